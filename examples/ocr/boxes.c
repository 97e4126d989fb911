/* A box is made from each connected group of probable pixels: its convex hull, the smallest
 * rectangle around that, and that rectangle grown, because the detector was trained on text
 * regions shrunk by a known ratio. Thresholds are the ones PP-OCR publishes with the model.
 */
#include "boxes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const float PIXEL_THRESHOLD = 0.3f;
static const float BOX_THRESHOLD = 0.6f;
static const float GROW_RATIO = 1.5f;
static const float MIN_SIDE = 3.0f; /* of the map, before growing */

typedef struct finder {
  const float *map;
  int width, height;
  uint8_t *seen; /* one byte a pixel */
  int *stack;    /* pixels of the group, as found */
  point *points; /* room for two points a row of the group, and as many for the hull */
} finder;

/* Fills f->stack with the group that holds pixel `start`; returns how many pixels it has. */
static int collect_group(finder *f, int start) {
  int count = 0;
  f->stack[count++] = start;
  f->seen[start] = 1;
  for (int next = 0; next < count; ++next) {
    int x = f->stack[next] % f->width, y = f->stack[next] / f->width;
    for (int dy = -1; dy <= 1; ++dy) {
      for (int dx = -1; dx <= 1; ++dx) {
        int nx = x + dx, ny = y + dy;
        if (nx < 0 || ny < 0 || nx >= f->width || ny >= f->height) continue;
        int pixel = ny * f->width + nx;
        if (f->seen[pixel] || f->map[pixel] <= PIXEL_THRESHOLD) continue;
        f->seen[pixel] = 1;
        f->stack[count++] = pixel;
      }
    }
  }
  return count;
}

static int compare_points(const void *left, const void *right) {
  const point *a = left, *b = right;
  if (a->x != b->x) return a->x < b->x ? -1 : 1;
  return (a->y > b->y) - (a->y < b->y);
}

static float cross(point o, point a, point b) {
  return (a.x - o.x) * (b.y - o.y) - (a.y - o.y) * (b.x - o.x);
}

/* The convex hull of sorted points (monotone chain); returns its size. */
static int convex_hull(const point *points, int count, point *hull) {
  int n = 0;
  for (int i = 0; i < count; ++i) {
    while (n >= 2 && cross(hull[n - 2], hull[n - 1], points[i]) <= 0) --n;
    hull[n++] = points[i];
  }
  for (int i = count - 2, lower = n + 1; i >= 0; --i) {
    while (n >= lower && cross(hull[n - 2], hull[n - 1], points[i]) <= 0) --n;
    hull[n++] = points[i];
  }
  return n > 1 ? n - 1 : n;
}

typedef struct rectangle {
  point centre, along; /* along: unit vector of the first side */
  float width, height;
} rectangle;

/* The smallest rectangle around a hull has a side on one of the hull's edges. */
static rectangle smallest_rectangle(const point *hull, int count) {
  rectangle best = {hull[0], {1, 0}, 0, 0};
  float best_area = INFINITY;
  for (int i = 0; i < count; ++i) {
    point a = hull[i], b = hull[(i + 1) % count];
    float length = hypotf(b.x - a.x, b.y - a.y);
    if (length == 0 && count > 1) continue;
    point u = count > 1 ? (point){(b.x - a.x) / length, (b.y - a.y) / length} : (point){1, 0};
    float low_s = INFINITY, high_s = -INFINITY, low_t = INFINITY, high_t = -INFINITY;
    for (int k = 0; k < count; ++k) {
      float s = hull[k].x * u.x + hull[k].y * u.y, t = hull[k].y * u.x - hull[k].x * u.y;
      low_s = fminf(low_s, s), high_s = fmaxf(high_s, s);
      low_t = fminf(low_t, t), high_t = fmaxf(high_t, t);
    }
    float area = (high_s - low_s) * (high_t - low_t);
    if (area >= best_area) continue;
    best_area = area;
    float s = (low_s + high_s) / 2, t = (low_t + high_t) / 2;
    best = (rectangle){{s * u.x - t * u.y, s * u.y + t * u.x}, u, high_s - low_s, high_t - low_t};
  }
  return best;
}

/* Corners clockwise from the upper left, with the first side the more level one. */
static quad rectangle_corners(rectangle r) {
  point u = r.along;
  float w = r.width / 2, h = r.height / 2;
  if (fabsf(u.x) < fabsf(u.y)) { /* take the other side as the level one */
    u = (point){-u.y, u.x};
    float keep = w;
    w = h;
    h = keep;
  }
  if (u.x < 0) u = (point){-u.x, -u.y};
  point v = {-u.y, u.x};
  quad q;
  const float sx[4] = {-1, 1, 1, -1}, sy[4] = {-1, -1, 1, 1};
  for (int i = 0; i < 4; ++i) {
    q.corner[i].x = r.centre.x + sx[i] * w * u.x + sy[i] * h * v.x;
    q.corner[i].y = r.centre.y + sx[i] * w * u.y + sy[i] * h * v.y;
  }
  return q;
}

/* The mean probability of the pixels whose centres lie in the quad. */
static float mean_inside(const finder *f, const quad *q) {
  float low_x = INFINITY, high_x = -INFINITY, low_y = INFINITY, high_y = -INFINITY;
  for (int i = 0; i < 4; ++i) {
    low_x = fminf(low_x, q->corner[i].x), high_x = fmaxf(high_x, q->corner[i].x);
    low_y = fminf(low_y, q->corner[i].y), high_y = fmaxf(high_y, q->corner[i].y);
  }
  int x0 = (int)fmaxf(low_x, 0), x1 = (int)fminf(high_x, (float)(f->width - 1));
  int y0 = (int)fmaxf(low_y, 0), y1 = (int)fminf(high_y, (float)(f->height - 1));
  double sum = 0, count = 0;
  for (int y = y0; y <= y1; ++y) {
    for (int x = x0; x <= x1; ++x) {
      point p = {(float)x + 0.5f, (float)y + 0.5f};
      bool is_inside = true;
      for (int i = 0; i < 4; ++i) {
        is_inside &= cross(q->corner[i], q->corner[(i + 1) % 4], p) >= 0;
      }
      if (!is_inside) continue;
      sum += f->map[y * f->width + x];
      count += 1;
    }
  }
  return count > 0 ? (float)(sum / count) : 0;
}

/* Turns the group on f->stack into a box in map pixels; false: too small or too unsure. */
static bool group_box(finder *f, int pixel_count, quad *out_box, float *out_score) {
  int point_count = 0;
  for (int i = 0; i < pixel_count; ++i) { /* only a group's outline can be on its hull */
    int pixel = f->stack[i], x = pixel % f->width, y = pixel / f->width;
    bool is_left = x == 0 || f->map[pixel - 1] <= PIXEL_THRESHOLD;
    bool is_right = x == f->width - 1 || f->map[pixel + 1] <= PIXEL_THRESHOLD;
    if (is_left) {
      f->points[point_count++] = (point){(float)x, (float)y};
      f->points[point_count++] = (point){(float)x, (float)(y + 1)};
    }
    if (is_right) {
      f->points[point_count++] = (point){(float)(x + 1), (float)y};
      f->points[point_count++] = (point){(float)(x + 1), (float)(y + 1)};
    }
  }
  qsort(f->points, (size_t)point_count, sizeof *f->points, compare_points);
  point *hull = f->points + point_count;
  rectangle r = smallest_rectangle(hull, convex_hull(f->points, point_count, hull));
  if (fminf(r.width, r.height) < MIN_SIDE) return false;
  quad inner = rectangle_corners(r);
  *out_score = mean_inside(f, &inner);
  if (*out_score < BOX_THRESHOLD) return false;
  float grow = r.width * r.height * GROW_RATIO / (2 * (r.width + r.height));
  r.width += 2 * grow;
  r.height += 2 * grow;
  if (fminf(r.width, r.height) < MIN_SIDE + 2) return false;
  *out_box = rectangle_corners(r);
  return true;
}

/* Lines from the top, and from the left within a line. */
static int compare_boxes(const void *left, const void *right) {
  const point *a = &((const text_box *)left)->box.corner[0];
  const point *b = &((const text_box *)right)->box.corner[0];
  if (a->y != b->y) return a->y < b->y ? -1 : 1;
  return (a->x > b->x) - (a->x < b->x);
}

static void sort_boxes(text_box *boxes, size_t count) {
  qsort(boxes, count, sizeof *boxes, compare_boxes);
  for (size_t i = 1; i < count; ++i) { /* boxes of one line may differ by a few pixels */
    for (size_t j = i; j > 0; --j) {
      const point *above = &boxes[j - 1].box.corner[0], *below = &boxes[j].box.corner[0];
      if (fabsf(below->y - above->y) >= 10 || below->x >= above->x) break;
      text_box keep = boxes[j];
      boxes[j] = boxes[j - 1];
      boxes[j - 1] = keep;
    }
  }
}

bool boxes_find(const float *map,
                int width,
                int height,
                float scale_x,
                float scale_y,
                text_box **out_boxes,
                size_t *out_count) {
  size_t pixels = (size_t)width * (size_t)height, capacity = 0, count = 0;
  finder f = {map, width, height, NULL, NULL, NULL};
  text_box *boxes = NULL;
  bool ok = false;
  f.seen = calloc(pixels, 1);
  f.stack = malloc(pixels * sizeof *f.stack);
  f.points = malloc(pixels * 9 * sizeof *f.points); /* 4 a pixel, the hull as many, and one */
  if (!f.seen || !f.stack || !f.points) goto done;
  for (size_t i = 0; i < pixels; ++i) {
    if (f.seen[i] || map[i] <= PIXEL_THRESHOLD) continue;
    int pixel_count = collect_group(&f, (int)i);
    text_box found;
    if (!group_box(&f, pixel_count, &found.box, &found.score)) continue;
    for (int c = 0; c < 4; ++c) {
      found.box.corner[c].x *= scale_x;
      found.box.corner[c].y *= scale_y;
    }
    if (count == capacity) {
      capacity = capacity ? capacity * 2 : 32;
      text_box *grown = realloc(boxes, capacity * sizeof *boxes);
      if (!grown) goto done;
      boxes = grown;
    }
    boxes[count++] = found;
  }
  if (count) sort_boxes(boxes, count);
  *out_boxes = boxes;
  *out_count = count;
  boxes = NULL;
  ok = true;
done:
  free(boxes);
  free(f.points);
  free(f.stack);
  free(f.seen);
  return ok;
}
