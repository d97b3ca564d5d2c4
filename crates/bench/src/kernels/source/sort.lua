local ffi, band, floor = require("ffi"), bit.band, math.floor
local heap = ffi.new("uint32_t[?]", 2 ^ 20)
local function sink(at, last)
  local value = heap[at]
  while true do
    local child = 2 * at + 1
    if child >= last then break end
    if child + 1 < last and heap[child + 1] > heap[child] then child = child + 1 end
    if heap[child] <= value then break end
    heap[at] = heap[child]
    at = child
  end
  heap[at] = value
end
return function(input, n, out, room)
  local count = floor(n / 4)
  if count > 2 ^ 20 or 4 * count > room then return 0 end
  for i = 0, count - 1 do
    heap[i] = input[4 * i] + 256 * input[4 * i + 1] + 65536 * input[4 * i + 2] + 16777216 * input[4 * i + 3]
  end
  for i = floor(count / 2) - 1, 0, -1 do sink(i, count) end
  for i = count - 1, 1, -1 do
    local last = heap[0]
    heap[0] = heap[i]
    heap[i] = last
    sink(0, i)
  end
  for i = 0, count - 1 do
    local value = heap[i]
    out[4 * i] = band(value, 255)
    out[4 * i + 1] = band(floor(value / 256), 255)
    out[4 * i + 2] = band(floor(value / 65536), 255)
    out[4 * i + 3] = band(floor(value / 16777216), 255)
  end
  return 4 * count
end
