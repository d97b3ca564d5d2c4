local ffi, band, bor, lshift, arshift = require("ffi"), bit.band, bit.bor, bit.lshift, bit.arshift
local taps = ffi.new("int32_t[16]", { -3, -9, -12, 4, 46, 112, 180, 226, 226, 180, 112, 46, 4, -12, -9, -3 })
local samples = ffi.new("int16_t[?]", 2 ^ 21)
return function(input, n, out, room)
  local count = math.floor(n / 2)
  for i = 0, count - 1 do samples[i] = bor(input[2 * i], lshift(input[2 * i + 1], 8)) end
  ffi.fill(out, 2 * count)
  for i = 0, count - 16 do
    local sum = 0
    for k = 0, 15 do sum = sum + taps[k] * samples[i + k] end
    sum = arshift(sum, 10)
    out[2 * i] = band(sum, 255)
    out[2 * i + 1] = band(arshift(sum, 8), 255)
  end
  return 2 * count
end
