/*
 * Replies with the file that the request names by its absolute path. It may read what the policy lets plugin_t read:
 *
 *   dewar plugin run cat.e                      denied, with the rule that is missing
 *   dewar plugin run cat.e --policy cat.cil     reads what lies below /usr/share
 */
long handle(const char *in, long n, char *out, long room)
{
	long length = 0, read;
	int file;
	if (n > 0 && in[n - 1] == '\n')
		n--;
	file = host_open(in, n);
	if (file < 0) {
		host_log(file == -13 ? "denied" : "not found", file == -13 ? 6 : 9);
		return 0;
	}
	while (length < room && (read = host_read(file, out + length, room - length)) > 0)
		length += read;
	host_close(file);
	return length;
}
