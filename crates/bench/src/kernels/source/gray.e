/* Colour to gray: three bytes to one, without multiplication of the colours by fractions. */
long handle(const unsigned char *in, long n, unsigned char *out, long room)
{
	long i, pixels = n / 3;
	if (pixels > room)
		pixels = room;
	for (i = 0; i < pixels; i++)
		out[i] = (in[3 * i] >> 2) + 5 * (in[3 * i + 1] >> 3) + (in[3 * i + 2] >> 3);
	return pixels;
}
