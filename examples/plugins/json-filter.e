/*
 * JSON without what is nobody's business: members called `password`, `token` or `email` are left out, wherever they are.
 * What is no JSON gives an empty reply, and a line in the log: it is not let pass unread.
 */
static const char *const names[] = { "\"password\"", "\"token\"", "\"email\"" };
static const unsigned char *in;
static long n, at, length, room;
static unsigned char *out;
static bool hidden;	/* what is read is left out */
static bool broken;

static void put(unsigned char c)
{
	if (hidden)
		return;
	if (length < room)
		out[length++] = c;
	else
		broken = true;
}

static void blanks(void)
{
	while (at < n && (in[at] == ' ' || in[at] == '\t' || in[at] == '\n' || in[at] == '\r'))
		put(in[at++]);
}

static void text(void)
{
	if (at >= n || in[at] != '"') {
		broken = true;
		return;
	}
	do {
		if (in[at] == '\\' && at + 1 < n)
			put(in[at++]);
		put(in[at++]);
	} while (at < n && in[at] != '"');
	if (at < n)
		put(in[at++]);
	else
		broken = true;
}

/* Whether the text that begins here is one of the names. An escape in it could spell one: then it is taken for one. */
static bool is_secret(void)
{
	long name, i, j;
	for (j = at + 1; j < n && in[j] != '"'; j++)
		if (in[j] == '\\')
			return true;
	for (name = 0; name < 3; name++) {
		for (i = 0; names[name][i] && at + i < n && in[at + i] == names[name][i]; i++)
			;
		if (!names[name][i])
			return true;
	}
	return false;
}

static void value(long depth);

static void object(long depth)
{
	bool first = true, outside = hidden;
	put(in[at++]);
	blanks();
	while (!broken && at < n && in[at] != '}') {
		hidden = outside || is_secret();
		if (!first)
			put(',');
		first = first && hidden;
		text();
		blanks();
		if (broken || at >= n || in[at] != ':') {
			broken = true;
			return;
		}
		put(in[at++]);
		blanks();
		value(depth + 1);
		blanks();
		hidden = outside;
		if (at < n && in[at] == ',') {
			at++;
			blanks();
			if (at < n && in[at] == '}')
				broken = true;
		} else if (at >= n || in[at] != '}')
			broken = true;
	}
	if (at < n)
		put(in[at++]);
	else
		broken = true;
}

static void array(long depth)
{
	put(in[at++]);
	blanks();
	while (!broken && at < n && in[at] != ']') {
		value(depth + 1);
		blanks();
		if (at < n && in[at] == ',') {
			put(in[at++]);
			blanks();
			if (at < n && in[at] == ']')
				broken = true;
		} else if (at >= n || in[at] != ']')
			broken = true;
	}
	if (at < n)
		put(in[at++]);
	else
		broken = true;
}

static void value(long depth)
{
	long begin = at;
	if (at >= n || depth > 64) {
		broken = true;
		return;
	}
	if (in[at] == '{')
		object(depth);
	else if (in[at] == '[')
		array(depth);
	else if (in[at] == '"')
		text();
	else {
		while (at < n && (in[at] == '-' || in[at] == '+' || in[at] == '.' || (in[at] >= '0' && in[at] <= '9')
				|| (in[at] >= 'a' && in[at] <= 'z') || in[at] == 'E'))
			put(in[at++]);
		if (at == begin)
			broken = true;
	}
}

long handle(const unsigned char *request, long request_length, unsigned char *reply, long reply_room)
{
	in = request;
	n = request_length;
	out = reply;
	room = reply_room;
	at = length = 0;
	hidden = broken = false;
	blanks();
	value(0);
	blanks();
	if (broken || at != n) {
		host_log("no JSON, or too much of it", 26);
		return 0;
	}
	return length;
}
