// Launches one compile and records what it cost: compile_timer TABLE ROOT [ccache] COMPILER ARGUMENTS...
//
// A row of TABLE: CPU seconds and wall seconds of the compiler and all its children, their largest resident set in MB,
// "compiled", "preprocessed" (ccache ran the preprocessor and found the result) or "cached", the source and the object.
// O_APPEND keeps rows of parallel compiles whole. CMake compiles this program while it configures: a script would cost
// an interpreter a file, this costs less than a millisecond.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char statistics[64];  // ccache appends here how this compile went

static void prepare_ccache(const char* root) {
  snprintf(statistics, sizeof statistics, "/tmp/compile_timer.%ld", (long)getpid());
  unlink(statistics);
  setenv("CCACHE_BASEDIR", root, 1);    // paths below the root are the same in every checkout
  setenv("CCACHE_DEPEND", "1", 1);      // a miss reads the compiler's list of headers: no run of the preprocessor
  setenv("CCACHE_PCH_EXTSUM", "1", 1);  // hashes the checksum that write_checksum makes, not 80 MB
  setenv("CCACHE_SLOPPINESS", "pch_defines,time_macros", 1);
  setenv("CCACHE_STATSLOG", statistics, 1);
}

static const char* read_verdict(void) {
  char text[4096];
  FILE* file = *statistics ? fopen(statistics, "r") : NULL;
  if (!file) return "compiled";
  text[fread(text, 1, sizeof text - 1, file)] = 0;
  fclose(file);
  unlink(statistics);
  if (strstr(text, "direct_cache_hit")) return "cached";
  return strstr(text, "preprocessed_cache_hit") ? "preprocessed" : "compiled";
}

// FNV-1a over words, into FILE.sum.
static int write_checksum(const char* path) {
  static uint64_t block[1 << 16];
  uint64_t sum = 14695981039346656037u;
  char name[4096];
  FILE* file = fopen(path, "rb");
  if (!file) return 1;
  for (size_t n; (n = fread(block, 1, sizeof block, file)) > 0;) {
    memset((char*)block + n, 0, sizeof block - n);
    for (size_t i = 0; i < (n + 7) / 8; ++i) sum = (sum ^ block[i]) * 1099511628211u;
  }
  fclose(file);
  snprintf(name, sizeof name, "%s.sum", path);
  file = fopen(name, "w");
  if (!file) return 1;
  fprintf(file, "%016llx\n", (unsigned long long)sum);
  return fclose(file);
}

static double seconds(struct timeval t) { return t.tv_sec + t.tv_usec / 1e6; }

static double clock_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}

static void append_row(const char* table, double wall, const struct rusage* used, char** argv) {
  const char *source = "", *object = "";
  char row[8192];
  for (char** word = argv; *word && word[1]; ++word) {
    if (!strcmp(*word, "-c")) source = word[1];
    if (!strcmp(*word, "-o")) object = word[1];
  }
  int size = snprintf(row, sizeof row, "%.3f\t%.3f\t%ld\t%s\t%s\t%s\n", seconds(used->ru_utime) + seconds(used->ru_stime), wall,
                      used->ru_maxrss >> 10, read_verdict(), source, object);
  int out = open(table, O_WRONLY | O_APPEND | O_CREAT, 0644);
  if (out < 0) return;
  if (size > 0 && size < (int)sizeof row && write(out, row, size) != size) perror(table);
  close(out);
  size_t length = strlen(object);
  if (length > 4 && !strcmp(object + length - 4, ".gch")) write_checksum(object);
}

int main(int argc, char** argv) {
  if (argc < 4) return fprintf(stderr, "usage: compile_timer TABLE ROOT [ccache] COMPILER ARGUMENTS...\n"), 2;
  const char* name = strrchr(argv[3], '/');
  if (!strcmp(name ? name + 1 : argv[3], "ccache")) prepare_ccache(argv[2]);
  double start = clock_seconds();
  pid_t child = fork();
  if (child == 0) {
    execvp(argv[3], argv + 3);
    perror(argv[3]);
    _exit(127);
  }
  int status;
  struct rusage used;
  if (child < 0 || wait4(child, &status, 0, &used) < 0) return perror("compile_timer"), 1;
  if (WIFSIGNALED(status)) {
    read_verdict();  // removes ccache's file
    return 128 + WTERMSIG(status);
  }
  if (WEXITSTATUS(status) == 0) append_row(argv[1], clock_seconds() - start, &used, argv + 3);
  else read_verdict();
  return WEXITSTATUS(status);
}
