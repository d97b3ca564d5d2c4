//! What plugins may call of the host: declarations, and what the results mean.

/// The host functions, as plugins see them. Results below 0 are errors: [`EACCES`] where the policy
/// denies, [`EINVAL`] for lengths and addresses that are not the plugin's, [`EBADF`] for handles it
/// does not have, [`ENOSPC`] and [`EMFILE`] beyond its limits.
pub const HOST_DECLARATIONS: &str = "
/* Writes text to the host's log; a text of no length asks for the permission alone. */
extern int host_log(const char *text, long len);
/* Copies what is kept under a key to `out`; the length of it all, or -1 when there is nothing. */
extern long host_get(const char *key, long key_len, void *out, long room);
/* Keeps a value under a key; a value of no length removes the key. */
extern int host_set(const char *key, long key_len, const void *value, long len);
/* Opens a file for reading, by its absolute path; a handle. */
extern int host_open(const char *path, long len);
/* Connects to `ADDRESS:PORT` or `[ADDRESS]:PORT` by TCP; a handle. */
extern int host_connect(const char *address, long len);
/* Reads from a handle; how many bytes, 0 at the end. */
extern long host_read(int handle, void *out, long room);
/* Writes to a connection; how many bytes. */
extern long host_write(int handle, const void *from, long len);
/* Closes a handle; all are closed when the call ends. */
extern int host_close(int handle);
";

/// There is no such file.
pub const ENOENT: i32 = -2;
/// Reading or writing failed.
pub const EIO: i32 = -5;
/// There is no such handle.
pub const EBADF: i32 = -9;
/// The policy denies it.
pub const EACCES: i32 = -13;
/// An address or a length is not the plugin's.
pub const EINVAL: i32 = -22;
/// There are as many handles as there may be.
pub const EMFILE: i32 = -24;
/// A limit is reached.
pub const ENOSPC: i32 = -28;
/// Nobody answers at that address.
pub const ECONNREFUSED: i32 = -111;
