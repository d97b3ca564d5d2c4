enum token_@n@ {
	END_@n@,
	NAME_@n@,
	NUMBER_@n@,
	SIGN_@n@,
	OTHER_@n@
};

struct lexer_@n@ {
	const char *at;
	uint32_t value;
};

static enum token_@n@ lexer_@n@_next(struct lexer_@n@ *l)
{
	while (isspace((unsigned char)*l->at))
		l->at++;
	l->value = 0;
	if (*l->at == '\0')
		return END_@n@;
	if (isdigit((unsigned char)*l->at)) {
		while (isdigit((unsigned char)*l->at))
			l->value = l->value * 10 + (uint32_t)(*l->at++ - '0');
		return NUMBER_@n@;
	}
	if (isalpha((unsigned char)*l->at) || *l->at == '_') {
		while (isalnum((unsigned char)*l->at) || *l->at == '_')
			l->value = mix(l->value, (uint32_t)*l->at++);
		return NAME_@n@;
	}
	switch (*l->at++) {
@signs@
	default:
		return OTHER_@n@;
	}
	return SIGN_@n@;
}

static uint32_t lexer_@n@(uint32_t x)
{
	struct lexer_@n@ l = { "@source@", 0 };
	uint32_t h = x;
	enum token_@n@ token;

	do {
		token = lexer_@n@_next(&l);
		h = mix(h, l.value * @k1@u + (uint32_t)token);
	} while (token != END_@n@);
	return h;
}
