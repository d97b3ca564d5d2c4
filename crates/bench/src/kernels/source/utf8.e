/* Whether a text is valid UTF-8, and how many characters it has up to where it is not. */
long handle(const unsigned char *in, long n, unsigned char *out, long room)
{
	long i = 0, characters = 0, k;
	int valid = 1;
	if (room < 9)
		return 0;
	while (i < n && valid) {
		unsigned int c = in[i], low = 0x80, high = 0xBF;
		long more;
		if (c < 0x80) more = 0;
		else if (c >= 0xC2 && c < 0xE0) more = 1;
		else if (c >= 0xE0 && c < 0xF0) more = 2;
		else if (c >= 0xF0 && c < 0xF5) more = 3;
		else break;
		if (c == 0xE0) low = 0xA0;
		if (c == 0xED) high = 0x9F;
		if (c == 0xF0) low = 0x90;
		if (c == 0xF4) high = 0x8F;
		if (i + more >= n)
			break;
		for (k = 1; k <= more; k++) {
			if (in[i + k] < low || in[i + k] > high)
				valid = 0;
			low = 0x80;
			high = 0xBF;
		}
		if (valid) {
			i += more + 1;
			characters++;
		}
	}
	out[0] = i == n;
	for (k = 0; k < 8; k++)
		out[k + 1] = characters >> (8 * k);
	return 9;
}
