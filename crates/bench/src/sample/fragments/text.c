static size_t text_@n@_split(char *line, char **words, size_t max)
{
	size_t count = 0;
	char *p = line;

	while (*p != '\0' && count < max) {
		while (*p == ' ' || *p == ',')
			p++;
		if (*p == '\0')
			break;
		words[count++] = p;
		while (*p != '\0' && *p != ' ' && *p != ',')
			p++;
		if (*p != '\0')
			*p++ = '\0';
	}
	return count;
}

static void text_@n@_capital(char *word)
{
	if (islower((unsigned char)word[0]))
		word[0] = (char)toupper((unsigned char)word[0]);
}

static uint32_t text_@n@(uint32_t x)
{
	static const char *const lines[] = {
@lines@
	};
	char line[LINE_BYTES];
	char *words[@k1@];
	uint32_t h = x;
	size_t count;
	size_t i;

	snprintf(line, sizeof(line), "%s", lines[x % COUNT_OF(lines)]);
	count = text_@n@_split(line, words, COUNT_OF(words));
	for (i = 0; i < count; i++) {
		text_@n@_capital(words[i]);
		h = mix(h, hash_text(words[i]));
		if (strlen(words[i]) > @k2@)
			h ^= @k3@u;
	}
	return h;
}
