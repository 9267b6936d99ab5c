// A library of version AB_VERSION, for tests of how libraries are looked for.
#pragma GCC visibility push(default)
extern "C" {

int answer_version() { return AB_VERSION; }
#if !defined(AB_LACKS)
int answer() { return 42; }
#endif

}  // extern "C"
#pragma GCC visibility pop
