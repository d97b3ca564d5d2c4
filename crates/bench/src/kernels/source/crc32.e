/* CRC-32 of Ethernet and ZIP, a byte at a time. */
static unsigned int table[256];

long handle(const unsigned char *in, long n, unsigned char *out, long room)
{
	unsigned int crc, i, bit;
	long at;
	if (room < 4)
		return 0;
	if (table[1] == 0)
		for (i = 0; i < 256; i++) {
			crc = i;
			for (bit = 0; bit < 8; bit++)
				crc = (crc & 1) ? (crc >> 1) ^ 0xEDB88320u : crc >> 1;
			table[i] = crc;
		}
	crc = 0xFFFFFFFFu;
	for (at = 0; at < n; at++)
		crc = table[(crc ^ in[at]) & 255] ^ (crc >> 8);
	crc = ~crc;
	for (i = 0; i < 4; i++)
		out[i] = crc >> (8 * i);
	return 4;
}
