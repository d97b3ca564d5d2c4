local floor, rshift = math.floor, bit.rshift
return function(input, n, out, room)
  local pixels = math.min(floor(n / 3), room)
  for i = 0, pixels - 1 do
    out[i] = rshift(input[3 * i], 2) + 5 * rshift(input[3 * i + 1], 3) + rshift(input[3 * i + 2], 3)
  end
  return pixels
end
