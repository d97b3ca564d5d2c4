struct record_@n@ {
	char name[@k1@];
@fields@
	uint32_t sum;
};

static void record_@n@_fill(struct record_@n@ *r, uint32_t x)
{
	memset(r, 0, sizeof(*r));
	snprintf(r->name, sizeof(r->name), "r%u", (unsigned)(x % 1000));
@fills@
	r->sum = hash_text(r->name);
}

static uint32_t record_@n@_mix(const struct record_@n@ *r)
{
	uint32_t h = r->sum;

@mixes@
	return h;
}

static int record_@n@_compare(const void *a, const void *b)
{
	const struct record_@n@ *left = a;
	const struct record_@n@ *right = b;

	if (left->sum != right->sum)
		return left->sum < right->sum ? -1 : 1;
	return strcmp(left->name, right->name);
}

static uint32_t record_@n@(uint32_t x)
{
	struct record_@n@ all[@k2@];
	uint32_t h = x;
	size_t i;

	for (i = 0; i < COUNT_OF(all); i++)
		record_@n@_fill(&all[i], x * @k3@u + (uint32_t)i);
	qsort(all, COUNT_OF(all), sizeof(all[0]), record_@n@_compare);
	for (i = 0; i < COUNT_OF(all); i++)
		h = mix(h, record_@n@_mix(&all[i]));
	return h;
}
