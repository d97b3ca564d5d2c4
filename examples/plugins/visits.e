/*
 * How often it was called: what a plugin keeps by host_set outlives calls and replacements. Static data would not do,
 * because it belongs to one of several instances.
 */
long handle(const char *in, long n, char *out, long room)
{
	long visits = 0, length = 0, unit = 1;
	if (room < 32 || host_get("visits", 6, &visits, sizeof visits) < -1)
		return 0;
	visits++;
	if (host_set("visits", 6, &visits, sizeof visits) != 0)
		return 0;
	while (unit <= visits / 10)
		unit *= 10;
	for (; unit; unit /= 10)
		out[length++] = '0' + visits / unit % 10;
	out[length++] = '\n';
	return length;
}
