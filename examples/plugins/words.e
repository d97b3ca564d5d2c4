/* Counts lines, words and bytes, as `wc` does, and replies with a line of text. */
static long print(char *out, long value)
{
	char digits[20];
	long count = 0, i;
	do {
		digits[count++] = '0' + value % 10;
		value /= 10;
	} while (value);
	for (i = 0; i < count; i++)
		out[i] = digits[count - 1 - i];
	return count;
}

long handle(const char *in, long n, char *out, long room)
{
	long lines = 0, words = 0, length, i;
	bool inside = false;
	if (n < 0 || room < 64)
		return 0;
	for (i = 0; i < n; i++) {
		bool blank = in[i] == ' ' || in[i] == '\n' || in[i] == '\t' || in[i] == '\r';
		lines += in[i] == '\n';
		words += !blank && !inside;
		inside = !blank;
	}
	length = print(out, lines);
	out[length++] = ' ';
	length += print(out + length, words);
	out[length++] = ' ';
	length += print(out + length, n);
	out[length++] = '\n';
	return length;
}
