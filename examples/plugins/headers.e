/*
 * Header fields: is given a request's head, an empty line, and its answer's status line and fields; replies with the
 * fields as they are to be. This one says what browsers may do with a page, and nothing about how old it is.
 */
static const char added[] =
	"Content-Security-Policy: default-src 'self'\r\n"
	"Referrer-Policy: no-referrer\r\n"
	"X-Frame-Options: DENY\r\n";
static const char removed[] = "last-modified:";

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? c + 32 : c;
}

/* Whether the line at `at` is to be left out. */
static bool is_removed(const char *in, long at, long n)
{
	long i, len = sizeof removed - 1;
	for (i = 0; i < len; i++)
		if (at + i >= n || lower(in[at + i]) != removed[i])
			return false;
	return true;
}

/* Behind the end of the line at `at`. */
static long next(const char *in, long at, long n)
{
	while (at < n && in[at] != '\n')
		at++;
	return at < n ? at + 1 : n;
}

long handle(const char *in, long n, char *out, long room)
{
	long at = 0, end, length = 0, i;
	if (n < 0 || room < n + sizeof added)
		return 0;
	/* The request ends with an empty line; the status line follows. */
	while (at < n && in[at] != '\r' && in[at] != '\n')
		at = next(in, at, n);
	at = next(in, at, n);
	at = next(in, at, n);
	for (; at < n && in[at] != '\r' && in[at] != '\n'; at = end) {
		end = next(in, at, n);
		if (!is_removed(in, at, n))
			for (i = at; i < end; i++)
				out[length++] = in[i];
	}
	for (i = 0; i < sizeof added - 1; i++)
		out[length++] = added[i];
	return length;
}
