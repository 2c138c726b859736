#pragma once

// OpenMP of one thread, for the programs that libFuzzer drives. They are compiled by clang without
// OpenMP (its pragmas are passed over): clang's runtime beside that of GCC, which oneDNN brings,
// would be two pools in one process, and GCC's own header is not C++ that clang takes.
inline int omp_in_parallel() { return 0; }
inline int omp_get_max_threads() { return 1; }
inline int omp_get_num_threads() { return 1; }
inline int omp_get_thread_num() { return 0; }
inline void omp_set_num_threads(int) {}
