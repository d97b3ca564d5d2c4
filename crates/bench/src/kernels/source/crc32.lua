local ffi, band, bxor, bnot, rshift = require("ffi"), bit.band, bit.bxor, bit.bnot, bit.rshift
local entries = ffi.new("int32_t[256]")
for i = 0, 255 do
  local crc = i
  for _ = 1, 8 do
    crc = band(crc, 1) == 1 and bxor(rshift(crc, 1), 0xEDB88320) or rshift(crc, 1)
  end
  entries[i] = bit.tobit(crc)
end
return function(input, n, out, room)
  local crc = bnot(0)
  for at = 0, n - 1 do
    crc = bxor(entries[band(bxor(crc, input[at]), 255)], rshift(crc, 8))
  end
  crc = bnot(crc)
  for i = 0, 3 do out[i] = band(rshift(crc, 8 * i), 255) end
  return 4
end
