/* Preloaded library that fails or records a process's calls on the files of a folder.

   It counts the calls that open, write, sync, rename or delete a file or create a
   folder, and fails one of them, for example the tenth. A write that fails with EIO or
   ENOSPC has written half of its data. Calls of stdio are wrapped as well, because glibc
   does not call `write` through the dynamic linker. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define ALIAS(name) __attribute__((alias(name)))

long calls;                 /* Number of calls in the folder. */
char failed[PATH_MAX + 16]; /* Name and path of the call that failed. */
static char folder[PATH_MAX];
static long target;
static int code, journal = -1;

/* Watches an absolute path; call `number` fails with `error`. Records to `log`. */
void watch(const char *path, long number, int error, int log)
{
    calls = 0, target = number, code = error, journal = log, *failed = 0;
    snprintf(folder, sizeof folder, "%s", path);
}

/* Returns whether a file of a folder, or an open file, is watched; sets its path. */
static int find(int dir, const char *name, char *path)
{
    const char *form = dir == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d";
    char link[64];
    ssize_t n = 0;
    int before = errno;
    size_t length = strlen(folder);
    if (!length) return 0;
    if (!name || *name != '/') {
        snprintf(link, sizeof link, form, dir);
        n = readlink(link, path, PATH_MAX - 1);
        errno = before;
        if (n < 0) return 0;
        path[n] = 0;
    }
    if (name) snprintf(path + n, PATH_MAX - n, "%s%s", n ? "/" : "", name);
    return !strncmp(path, folder, length) && (path[length] == '/' || !path[length]);
}

static int fails(const char *call, const char *path)
{
    if (__atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST) != target) return 0;
    snprintf(failed, sizeof failed, "%s %s", call, path);
    errno = code;
    return 1;
}

static void record(const char *call, const char *path, const char *other, long place,
                   const void *data, size_t size)
{
    char line[2 * PATH_MAX + 64];
    if (journal < 0) return;
    size_t n = sprintf(line, "%s\t%s\t%s\t%ld\t%zu\n", call, path, other, place, size);
    struct iovec parts[] = {{line, n}, {(void *)data, size}};
    REAL(writev)(journal, parts, 2);
}

static int open_at(int dir, const char *file, int flags, mode_t mode)
{
    char path[PATH_MAX];
    if (!find(dir, file, path)) return REAL(openat)(dir, file, flags, mode);
    if (fails("open", path)) return -1;
    int is_new = flags & O_CREAT && access(path, F_OK);
    int result = REAL(openat)(dir, file, flags, mode);
    if (result >= 0 && (is_new || flags & O_TRUNC))
        record(is_new ? "create" : "truncate", path, "", 0, "", 0);
    return result;
}

#define OPEN(name, ARGUMENTS, dir)                                                   \
    int name##64 ARGUMENTS ALIAS(#name);                                             \
    int name ARGUMENTS                                                               \
    {                                                                                \
        va_list list;                                                                \
        va_start(list, flags);                                                       \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0;      \
        va_end(list);                                                                \
        return open_at(dir, file, flags, mode);                                      \
    }
OPEN(open, (const char *file, int flags, ...), AT_FDCWD)
OPEN(openat, (int dir, const char *file, int flags, ...), dir)

FILE *fopen64(const char *file, const char *mode) ALIAS("fopen");
FILE *fopen(const char *file, const char *mode)
{
    char path[PATH_MAX];
    if (!find(AT_FDCWD, file, path)) return REAL(fopen)(file, mode);
    if (fails("open", path)) return NULL;
    int is_new = *mode != 'r' && access(path, F_OK);
    FILE *stream = REAL(fopen)(file, mode);
    if (stream && (is_new || *mode == 'w'))
        record(is_new ? "create" : "truncate", path, "", 0, "", 0);
    return stream;
}

ssize_t write(int file, const void *data, size_t size)
{
    char path[PATH_MAX];
    int watched = find(file, NULL, path), lost = watched && fails("write", path);
    if (lost) size = code == EINTR ? 0 : size / 2;
    ssize_t n = REAL(write)(file, data, size);
    if (lost) return errno = code, -1;
    if (watched && n > 0)
        record("write", path, "", lseek(file, 0, SEEK_CUR) - n, data, n);
    return n;
}

size_t fwrite(const void *data, size_t size, size_t count, FILE *stream)
{
    char path[PATH_MAX];
    int watched = find(fileno(stream), NULL, path);
    int lost = watched && fails("write", path);
    if (lost) count = code == EINTR ? 0 : count / 2;
    size_t n = REAL(fwrite)(data, size, count, stream);
    if (lost) return errno = code, 0;
    if (watched && n) record("write", path, "", ftell(stream) - n * size, data, n * size);
    return n;
}

/* Loses the unwritten data of a stream if the call fails. */
#define STREAM(name)                                                                 \
    int name(FILE *stream)                                                           \
    {                                                                                \
        char path[PATH_MAX];                                                         \
        int lost = stream && __fwritable(stream) && find(fileno(stream), NULL, path) \
                   && fails("write", path);                                          \
        if (lost) __fpurge(stream);                                                  \
        int result = REAL(name)(stream);                                             \
        return lost ? errno = code, EOF : result;                                    \
    }
STREAM(fflush)
STREAM(fclose)

/* A call on a file of a folder, or on an open file, which is recorded under its kind. */
#define CALL(type, name, ARGUMENTS, VALUES, kind, dir, file, new_dir, new_file, size) \
    type name ARGUMENTS                                                              \
    {                                                                                \
        char path[PATH_MAX], other[PATH_MAX] = "";                                   \
        const char *renamed = new_file;                                              \
        if (!find(dir, file, path)) return REAL(name) VALUES;                        \
        if (renamed) find(new_dir, renamed, other);                                  \
        if (fails(kind, path)) return -1;                                            \
        type result = REAL(name) VALUES;                                             \
        if (result >= 0) record(kind, path, other, size, "", 0);                     \
        return result;                                                               \
    }
#define ON_FILE(name, kind) CALL(int, name, (int n), (n), kind, n, NULL, 0, NULL, 0)
#define ON_PATH(name, ARGUMENTS, VALUES, kind, dir) \
    CALL(int, name, ARGUMENTS, VALUES, kind, dir, file, 0, NULL, 0)
#define DELETE(name) ON_PATH(name, (const char *file), (file), "unlink", AT_FDCWD)
#define CUT (int file, off_t size)
#define COPY (int to, int from, off_t *place, size_t size)
ON_FILE(fsync, "fsync")
ON_FILE(fdatasync, "fsync")
DELETE(unlink)
DELETE(rmdir)
DELETE(remove)
ON_PATH(unlinkat, (int n, const char *file, int flags), (n, file, flags), "unlink", n)
ON_PATH(mkdir, (const char *file, mode_t mode), (file, mode), "mkdir", AT_FDCWD)
ON_PATH(mkdirat, (int n, const char *file, mode_t mode), (n, file, mode), "mkdir", n)
CALL(int, rename, (const char *file, const char *to), (file, to), "rename", AT_FDCWD, file,
     AT_FDCWD, to, 0)
CALL(int, renameat, (int n, const char *file, int in, const char *to), (n, file, in, to),
     "rename", n, file, in, to, 0)
CALL(int, ftruncate, CUT, (file, size), "truncate", file, NULL, 0, NULL, size)
CALL(ssize_t, sendfile, COPY, (to, from, place, size), "copy", to, NULL, 0, NULL, 0)
int ftruncate64 CUT ALIAS("ftruncate");
ssize_t sendfile64 COPY ALIAS("sendfile");
