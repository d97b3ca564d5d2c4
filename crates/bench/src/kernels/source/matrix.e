/* Products of pairs of 16 by 16 matrices of bytes, modulo 256. */
long handle(const unsigned char *in, long n, unsigned char *out, long room)
{
	long pair, pairs = n / 512;
	int i, j, k;
	if (pairs > room / 256)
		pairs = room / 256;
	for (pair = 0; pair < pairs; pair++) {
		const unsigned char *a = in + 512 * pair, *b = a + 256;
		unsigned char *c = out + 256 * pair;
		for (i = 0; i < 16; i++)
			for (j = 0; j < 16; j++) {
				unsigned int sum = 0;
				for (k = 0; k < 16; k++)
					sum += a[16 * i + k] * b[16 * k + j];
				c[16 * i + j] = sum;
			}
	}
	return 256 * pairs;
}
