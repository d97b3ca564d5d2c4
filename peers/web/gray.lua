-- Colour to gray as an output filter of Apache's mod_lua.
function gray(r)
	local carry, head, lines = "", 0, 0
	r.content_type = "image/x-portable-graymap"
	coroutine.yield()
	while bucket do
		local out, at, data = {}, 1, carry .. bucket
		while lines < 3 and at <= #data do
			local byte = data:sub(at, at)
			out[#out + 1] = head == 1 and "5" or byte
			head = head + 1
			if byte == "\n" then lines = lines + 1 end
			at = at + 1
		end
		while at + 2 <= #data do
			local red, green, blue = data:byte(at, at + 2)
			out[#out + 1] = string.char((red >> 2) + 5 * (green >> 3) + (blue >> 3))
			at = at + 3
		end
		carry = data:sub(at)
		coroutine.yield(table.concat(out))
	end
end
