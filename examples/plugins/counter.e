/*
 * Counts visits of pages. As a handler of a web server it is given a request, and answers with how often its target was
 * asked for; what it keeps by host_set outlives requests and replacements.
 */
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
	static const char head[] = "Content-Type: text/plain\r\nCache-Control: no-store\r\n\r\n";
	static const char full[] = "Status: 507\r\n\r\n";
	long begin = 0, end, visits = 0, length = 0, i;
	if (n < 0 || room < 256)
		return 0;
	while (begin < n && in[begin] != ' ')
		begin++;
	begin++;
	for (end = begin; end < n && in[end] != ' ' && in[end] != '?'; end++)
		;
	if (host_get(in + begin, end - begin, &visits, sizeof visits) < -1)
		return 0;
	visits++;
	if (host_set(in + begin, end - begin, &visits, sizeof visits) != 0) {
		for (i = 0; i < sizeof full - 1; i++)
			out[length++] = full[i];
		return length;
	}
	for (i = 0; i < sizeof head - 1; i++)
		out[length++] = head[i];
	length += print(out + length, visits);
	out[length++] = '\n';
	return length;
}
