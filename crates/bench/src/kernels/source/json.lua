-- The characters: " is 34, \ is 92, space 32, end of line 10, : 58, digits from 48 to 57, i 105, d 100.
local floor = math.floor
return function(input, n, out, room)
  if room < 16 then return 0 end
  local sum, fields, i = 0, 0, 0
  while i < n do
    if input[i] ~= 34 then
      i = i + 1
    else
      i = i + 1
      local start = i
      while i < n and input[i] ~= 34 do i = i + (input[i] == 92 and 2 or 1) end
      local length = i - start
      i = i + 1
      while i < n and (input[i] == 32 or input[i] == 10) do i = i + 1 end
      if i < n and input[i] == 58 and length == 2 and input[start] == 105 and input[start + 1] == 100 then
        i = i + 1
        while i < n and (input[i] == 32 or input[i] == 10) do i = i + 1 end
        local value = 0 -- exact below 2^53
        while i < n and input[i] >= 48 and input[i] <= 57 do
          value = 10 * value + (input[i] - 48)
          i = i + 1
        end
        sum = sum + value
        fields = fields + 1
      end
    end
  end
  for k = 0, 7 do
    out[k], out[k + 8] = sum % 256, fields % 256
    sum, fields = floor(sum / 256), floor(fields / 256)
  end
  return 16
end
