/*
 * Colour to gray: an image as binary PPM (P6, 8 bits) becomes one as binary PGM (P5).
 * A mistake in the image gives an empty reply, and a line in the log.
 */
static long at;	/* how far the header has been read */

static long fail(const char *why, long len)
{
	host_log(why, len);
	return 0;
}

/* The next number of the header, after blanks and comments; -1 if there is none. */
static long number(const unsigned char *in, long n)
{
	long value = 0, digits = 0;
	while (at < n && (in[at] == ' ' || in[at] == '\t' || in[at] == '\n' || in[at] == '\r' || in[at] == '#')) {
		if (in[at] == '#')
			while (at < n && in[at] != '\n')
				at++;
		else
			at++;
	}
	while (at < n && in[at] >= '0' && in[at] <= '9' && digits < 9) {
		value = 10 * value + (in[at] - '0');
		digits++;
		at++;
	}
	return digits ? value : -1;
}

/* Writes a number and the blank behind it; how many bytes. */
static long print(unsigned char *out, long value, char blank)
{
	unsigned char digits[10];
	long count = 0, i;
	do {
		digits[count++] = '0' + value % 10;
		value /= 10;
	} while (value);
	for (i = 0; i < count; i++)
		out[i] = digits[count - 1 - i];
	out[count] = blank;
	return count + 1;
}

long handle(const unsigned char *in, long n, unsigned char *out, long room)
{
	long width, height, most, pixels, i, length = 3;
	if (n < 3 || in[0] != 'P' || in[1] != '6')
		return fail("not a binary PPM image", 22);
	at = 2;
	width = number(in, n);
	height = number(in, n);
	most = number(in, n);
	at++;	/* one blank ends the header */
	if (width <= 0 || height <= 0 || most != 255)
		return fail("not a PPM header for 8 bits", 27);
	pixels = width * height;
	if (pixels > (n - at) / 3)
		return fail("the image is cut off", 20);
	if (room < 40 || pixels > room - 40)
		return fail("no room for the reply", 21);
	out[0] = 'P'; out[1] = '5'; out[2] = '\n';
	length += print(out + length, width, ' ');
	length += print(out + length, height, '\n');
	length += print(out + length, 255, '\n');
	in += at;
	out += length;
	for (i = 0; i < pixels; i++)
		out[i] = (in[3 * i] >> 2) + 5 * (in[3 * i + 1] >> 3) + (in[3 * i + 2] >> 3);
	return length + pixels;
}
