#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char blank[] = "", space[] = " ";

bool alphabet_load(const char *path, alphabet *out) {
  memset(out, 0, sizeof *out);
  FILE *file = fopen(path, "rb");
  if (!file) return false;
  size_t bytes = 0, lines = 0;
  bool ok = fseek(file, 0, SEEK_END) == 0;
  long end = ok ? ftell(file) : -1;
  ok = end > 0 && end < 16 * 1024 * 1024 && fseek(file, 0, SEEK_SET) == 0;
  if (ok) out->bytes = malloc((size_t)end + 1);
  if (out->bytes) bytes = fread(out->bytes, 1, (size_t)end, file);
  fclose(file);
  if (!out->bytes || bytes != (size_t)end) {
    alphabet_free(out);
    return false;
  }
  out->bytes[bytes] = 0;
  for (size_t i = 0; i < bytes; ++i) lines += out->bytes[i] == '\n';
  if (out->bytes[bytes - 1] != '\n') ++lines;
  out->keys = malloc((lines + 2) * sizeof *out->keys);
  if (!out->keys) {
    alphabet_free(out);
    return false;
  }
  out->keys[out->key_count++] = blank;
  for (char *line = out->bytes; line < out->bytes + bytes;) {
    char *next = line + strcspn(line, "\n");
    if (next > line && next[-1] == '\r') next[-1] = 0;
    *next = 0;
    out->keys[out->key_count++] = line;
    line = next + 1;
  }
  out->keys[out->key_count++] = space;
  return true;
}

void alphabet_free(alphabet *letters) {
  free(letters->keys);
  free(letters->bytes);
  memset(letters, 0, sizeof *letters);
}

float text_decode(const alphabet *letters,
                  const float *probabilities,
                  size_t steps,
                  char *text,
                  size_t text_bytes) {
  size_t used = 0, last = 0, kept = 0;
  double sum = 0;
  for (size_t t = 0; t < steps; ++t) {
    const float *row = probabilities + t * letters->key_count;
    size_t best = 0;
    for (size_t k = 1; k < letters->key_count; ++k) {
      if (row[k] > row[best]) best = k;
    }
    if (best != 0 && best != last) {
      size_t key_bytes = strlen(letters->keys[best]);
      if (used + key_bytes + 1 > text_bytes) break;
      memcpy(text + used, letters->keys[best], key_bytes);
      used += key_bytes;
      sum += row[best];
      ++kept;
    }
    last = best;
  }
  text[used] = 0;
  return kept ? (float)(sum / (double)kept) : 0;
}
