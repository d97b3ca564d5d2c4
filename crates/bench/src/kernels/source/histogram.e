/* How often each byte occurs: 256 counts of four bytes. */
long handle(const unsigned char *in, long n, unsigned char *out, long room)
{
	unsigned int count[256];
	long i;
	if (room < 1024)
		return 0;
	for (i = 0; i < 256; i++)
		count[i] = 0;
	for (i = 0; i < n; i++)
		count[in[i]]++;
	for (i = 0; i < 1024; i++)
		out[i] = count[i / 4] >> (8 * (i % 4));
	return 1024;
}
