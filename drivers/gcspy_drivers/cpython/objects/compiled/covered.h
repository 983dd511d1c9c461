/* Mappings of a process, in order of address. */
#ifndef GCSPY_COVERED_H
#define GCSPY_COVERED_H

#include "arrays.h"

/* Whether something is mapped at an address. */
static inline int covered(const struct i64s *starts, const struct i64s *ends, int64_t word)
{
    int64_t low = 0, high = starts->length;
    while (low < high) {
        int64_t middle = (low + high) >> 1;
        if (starts->at[middle] <= word)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && word < ends->at[low - 1];
}

#endif
