/* A low-pass filter of 16 taps over samples of 16 bits, in whole numbers. */
static const int taps[16] = { -3, -9, -12, 4, 46, 112, 180, 226, 226, 180, 112, 46, 4, -12, -9, -3 };
static short samples[1 << 21];

long handle(const unsigned char *in, long n, unsigned char *out, long room)
{
	long i, count = n / 2;
	int k;
	if (count > (1 << 21) || 2 * count > room)
		return 0;
	for (i = 0; i < count; i++)
		samples[i] = in[2 * i] | in[2 * i + 1] << 8;
	for (i = 0; i < 2 * count; i++)
		out[i] = 0;
	for (i = 0; i < count - 15; i++) {
		int sum = 0;
		for (k = 0; k < 16; k++)
			sum += taps[k] * samples[i + k];
		sum >>= 10;
		out[2 * i] = sum;
		out[2 * i + 1] = sum >> 8;
	}
	return 2 * count;
}
