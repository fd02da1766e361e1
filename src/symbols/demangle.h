/* SPDX-License-Identifier: Apache-2.0 */
/*
 * demangle - C++ names as people say them.
 *
 * The demangler is libstdc++'s, loaded when it is there: a C program need not link
 * the C++ library for it. Without it names stay as they are in the file.
 */
#ifndef TTM_SYMBOLS_DEMANGLE_H
#define TTM_SYMBOLS_DEMANGLE_H

#include <stddef.h>

/* Longer names are left as they are: what they stand for may be longer by far. */
#define TTM_DEMANGLE_MAX 8192

/*
 * "_ZN4ttnn6matmulERKi" → "ttnn::matmul(int const&)". A name that is not mangled,
 * or cannot be demangled, comes back as a copy. To be freed; NULL when memory is
 * short.
 */
char *ttm_demangle(const char *name);

/*
 * "void ttnn::matmul<int>(int const&) [clone .cold]" → "ttnn::matmul": return type,
 * template arguments, parameters and what follows them are left out. Of a name that
 * could not be demangled (compilers are ahead of demanglers) the part that can be read
 * for certain: "ttnn::launch…". To be freed; NULL when memory is short.
 */
char *ttm_demangle_shorten(const char *full);

#endif /* TTM_SYMBOLS_DEMANGLE_H */
