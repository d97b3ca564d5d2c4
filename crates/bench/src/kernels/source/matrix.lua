local band, floor, min = bit.band, math.floor, math.min
return function(input, n, out, room)
  local pairs = min(floor(n / 512), floor(room / 256))
  for pair = 0, pairs - 1 do
    local a, c = input + 512 * pair, out + 256 * pair
    local b = a + 256
    for i = 0, 15 do
      for j = 0, 15 do
        local sum = 0
        for k = 0, 15 do sum = sum + a[16 * i + k] * b[16 * k + j] end
        c[16 * i + j] = band(sum, 255)
      end
    end
  end
  return 256 * pairs
end
