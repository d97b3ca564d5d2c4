static uint32_t bits_@n@_count(uint32_t x)
{
	uint32_t count = 0;

	for (; x != 0; x &= x - 1)
		count++;
	return count;
}

static uint32_t bits_@n@_reverse(uint32_t x)
{
	uint32_t out = 0;
	int i;

	for (i = 0; i < 32; i++) {
		out = out << 1 | (x & 1);
		x >>= 1;
	}
	return out;
}

static uint32_t bits_@n@_check(const uint8_t *bytes, size_t length)
{
	uint32_t crc = 0xffffffffu;
	size_t i;
	int bit;

	for (i = 0; i < length; i++) {
		crc ^= bytes[i];
		for (bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? @k1@u : 0);
	}
	return ~crc;
}

static uint32_t bits_@n@(uint32_t x)
{
	uint8_t bytes[@k2@];
	size_t i;

	for (i = 0; i < sizeof(bytes); i++) {
		x = next_random(x);
		bytes[i] = (uint8_t)(bits_@n@_count(x) * @k3@u + x);
	}
	return bits_@n@_reverse(bits_@n@_check(bytes, sizeof(bytes)));
}
