#include <stdlib.h>

void *plugin_allocate(size_t bytes);
void *plugin_allocate(size_t bytes) { return malloc(bytes); }
