/* From the recogniser's probabilities to text. */
#ifndef OCR_TEXT_H
#define OCR_TEXT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct alphabet {
  char *bytes;      /* owned: the key file, lines terminated by 0 */
  char **keys;      /* owned: one string a class; class 0 is the blank */
  size_t key_count; /* classes, the blank and the space included */
} alphabet;

/* Reads a key file: one character a line. */
bool alphabet_load(const char *path, alphabet *out);
void alphabet_free(alphabet *letters);

/* Reads `steps` rows of key_count probabilities: the best class of each row, repeats merged,
 * blanks dropped (CTC). Writes text_bytes at most, terminated. Returns the mean probability of
 * the characters kept, 0 if there is none. */
float text_decode(const alphabet *letters,
                  const float *probabilities,
                  size_t steps,
                  char *text,
                  size_t text_bytes);

#endif
