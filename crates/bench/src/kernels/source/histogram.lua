local ffi, band, rshift, floor = require("ffi"), bit.band, bit.rshift, math.floor
local count = ffi.new("uint32_t[256]")
return function(input, n, out, room)
  ffi.fill(count, 1024)
  for i = 0, n - 1 do count[input[i]] = count[input[i]] + 1 end
  for i = 0, 1023 do out[i] = band(rshift(count[floor(i / 4)], 8 * (i % 4)), 255) end
  return 1024
end
