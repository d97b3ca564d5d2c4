local floor = math.floor
return function(input, n, out, room)
  if room < 9 then return 0 end
  local i, characters = 0, 0
  while i < n do
    local c, low, high, more = input[i], 0x80, 0xBF, nil
    if c < 0x80 then more = 0
    elseif c >= 0xC2 and c < 0xE0 then more = 1
    elseif c >= 0xE0 and c < 0xF0 then more = 2
    elseif c >= 0xF0 and c < 0xF5 then more = 3
    else break end
    if c == 0xE0 then low = 0xA0 end
    if c == 0xED then high = 0x9F end
    if c == 0xF0 then low = 0x90 end
    if c == 0xF4 then high = 0x8F end
    if i + more >= n then break end
    local valid = true
    for k = 1, more do
      if input[i + k] < low or input[i + k] > high then valid = false end
      low, high = 0x80, 0xBF
    end
    if not valid then break end
    i = i + more + 1
    characters = characters + 1
  end
  out[0] = i == n and 1 or 0
  for k = 1, 8 do
    out[k] = characters % 256
    characters = floor(characters / 256)
  end
  return 9
end
