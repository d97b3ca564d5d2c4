/* The sum of all numbers in fields called "id" of a JSON text, outside of strings. */
long handle(const unsigned char *in, long n, unsigned char *out, long room)
{
	unsigned long sum = 0, fields = 0;
	long i = 0, k;
	if (room < 16)
		return 0;
	while (i < n) {
		if (in[i] != '"') {
			i++;
			continue;
		}
		long start = ++i;
		while (i < n && in[i] != '"')
			i += in[i] == '\\' ? 2 : 1;
		long length = i - start;
		i++;
		while (i < n && (in[i] == ' ' || in[i] == '\n'))
			i++;
		if (i >= n || in[i] != ':' || length != 2 || in[start] != 'i' || in[start + 1] != 'd')
			continue;
		i++;
		while (i < n && (in[i] == ' ' || in[i] == '\n'))
			i++;
		unsigned long value = 0;
		while (i < n && in[i] >= '0' && in[i] <= '9')
			value = 10 * value + (in[i++] - '0');
		sum += value;
		fields++;
	}
	for (k = 0; k < 8; k++) {
		out[k] = sum >> (8 * k);
		out[k + 8] = fields >> (8 * k);
	}
	return 16;
}
