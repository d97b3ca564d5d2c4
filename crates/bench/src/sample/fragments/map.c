enum { SLOTS_@n@ = @slots@ };

struct map_@n@ {
	uint32_t key[SLOTS_@n@];
	uint32_t value[SLOTS_@n@];
	uint8_t used[SLOTS_@n@];
	uint32_t entries;
};

static size_t map_@n@_place(const struct map_@n@ *m, uint32_t key)
{
	size_t at = (key * @k1@u) % SLOTS_@n@;

	while (m->used[at] && m->key[at] != key)
		at = (at + 1) % SLOTS_@n@;
	return at;
}

static void map_@n@_add(struct map_@n@ *m, uint32_t key, uint32_t value)
{
	size_t at = map_@n@_place(m, key);

	if (!m->used[at]) {
		if (m->entries + 1 >= SLOTS_@n@)
			return;
		m->used[at] = 1;
		m->key[at] = key;
		m->value[at] = 0;
		m->entries++;
	}
	m->value[at] += value;
}

static uint32_t map_@n@(uint32_t x)
{
	static struct map_@n@ m;
	uint32_t h = @k2@u;
	uint32_t i;

	memset(&m, 0, sizeof(m));
	for (i = 0; i < @k3@u; i++) {
		x = next_random(x);
		map_@n@_add(&m, x % (SLOTS_@n@ * 2), i);
	}
	for (i = 0; i < SLOTS_@n@; i++)
		if (m.used[i])
			h = mix(h, m.key[i] ^ m.value[i]);
	return mix(h, m.entries);
}
