-- Runs a kernel for the benchmark: `load FILE`, `run TIMES`, `reply FILE`, one command a line.
local ffi = require("ffi")
ffi.cdef [[
typedef struct { long seconds; long nanoseconds; } dewar_time;
int clock_gettime(int clock, dewar_time *time);
]]
local time = ffi.new("dewar_time")
local function now()
  ffi.C.clock_gettime(1, time)
  return tonumber(time.seconds) * 1e9 + tonumber(time.nanoseconds)
end
local handle = dofile(arg[1])
local n, length, room, request, reply = 0, 0, 0
for line in io.lines() do
  local command, argument = line:match("^(%a+) (.*)$")
  if command == "load" then
    local file = assert(io.open(argument, "rb"))
    local bytes = file:read("*a")
    file:close()
    n = #bytes
    room = 2 * n + 4096
    request, reply = ffi.new("uint8_t[?]", n + 1), ffi.new("uint8_t[?]", room)
    ffi.copy(request, bytes, n)
    print("loaded")
  elseif command == "run" then
    local start = now()
    for _ = 1, tonumber(argument) do
      length = handle(request, n, reply, room)
    end
    print(string.format("%.0f", now() - start))
  elseif command == "reply" then
    local file = assert(io.open(argument, "wb"))
    file:write(ffi.string(reply, length))
    file:close()
    print("written")
  end
  io.flush()
end
