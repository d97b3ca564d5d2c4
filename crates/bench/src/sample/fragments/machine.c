struct machine_@n@ {
	uint32_t stack[STACK_WORDS];
	size_t top;
	uint32_t steps;
};

static void machine_@n@_push(struct machine_@n@ *m, uint32_t value)
{
	if (m->top < COUNT_OF(m->stack))
		m->stack[m->top++] = value;
}

static uint32_t machine_@n@_pop(struct machine_@n@ *m)
{
	return m->top > 0 ? m->stack[--m->top] : @k1@u;
}

static void machine_@n@_step(struct machine_@n@ *m, unsigned code)
{
	uint32_t a = machine_@n@_pop(m);
	uint32_t b = machine_@n@_pop(m);

	m->steps++;
	switch (code) {
@cases@
	default:
		machine_@n@_push(m, a);
		machine_@n@_push(m, b ^ @k3@u);
		break;
	}
}

static uint32_t machine_@n@(uint32_t x)
{
	struct machine_@n@ m = { { 0 }, 0, 0 };
	int i;

	for (i = 0; i < @k2@; i++) {
		x = next_random(x);
		machine_@n@_push(&m, x);
		machine_@n@_push(&m, x >> 7);
		machine_@n@_step(&m, x % @codes@u);
	}
	return mix(machine_@n@_pop(&m), m.steps);
}
