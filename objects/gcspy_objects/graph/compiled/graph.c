/*
 * Loops over a graph of references: see ../kernels.py, which has the same in Python and says what each argument is.
 *
 * `../references.py` has checked that no target and no root is beyond the objects.
 * Source: L. Georgiadis, R. Tarjan, R. Werneck, "Finding Dominators in Practice" (2006), algorithm SNCA.
 */
#include "arrays.h"

enum { AHEAD = 16 }; /* references to look at before they are needed */

GCSPY_LOOP int64_t number(struct i64s starts, struct i32s targets, struct i32s roots, struct i32s number, struct i32s node,
                          struct i32s parent, struct i32s way, struct i64s turn)
{
    int64_t count = 1;
    node.at[0] = -1;
    parent.at[0] = 0;
    for (int64_t r = 0; r < roots.length; r++) {
        int32_t root = roots.at[r];
        if (number.at[root] != 0)
            continue;
        number.at[root] = (int32_t)count;
        node.at[count] = root;
        parent.at[count] = 0;
        count++;
        int64_t depth = 0;
        way.at[0] = root;
        turn.at[0] = starts.at[root];
        while (depth >= 0) {
            int32_t here = way.at[depth];
            int64_t edge = turn.at[depth], end = starts.at[here + 1];
            int32_t there = -1;
            while (edge < end) {
                if (end - edge > AHEAD)
                    PREFETCH(&number.at[targets.at[edge + AHEAD]]);
                int32_t candidate = targets.at[edge++];
                if (number.at[candidate] == 0) {
                    there = candidate;
                    break;
                }
            }
            if (there < 0) {
                depth--;
                continue;
            }
            turn.at[depth] = edge;
            number.at[there] = (int32_t)count;
            node.at[count] = there;
            parent.at[count] = number.at[here];
            count++;
            depth++;
            way.at[depth] = there;
            turn.at[depth] = starts.at[there];
        }
    }
    return count;
}

GCSPY_LOOP void predecessors(struct i64s starts, struct i32s targets, struct i32s roots, struct i32s number,
                             struct i32s node, int64_t count, struct i64s begins, struct i32s sources)
{
    /* Counted two places further on, so that filling moves each begin to where it belongs. */
    for (int64_t r = 0; r < roots.length; r++)
        begins.at[number.at[roots.at[r]] + 2]++;
    for (int64_t u = 1; u < count; u++) {
        int64_t end = starts.at[node.at[u] + 1];
        for (int64_t edge = starts.at[node.at[u]]; edge < end; edge++)
            begins.at[number.at[targets.at[edge]] + 2]++;
    }
    for (int64_t u = 2; u < count + 2; u++)
        begins.at[u] += begins.at[u - 1];
    for (int64_t r = 0; r < roots.length; r++)
        sources.at[begins.at[number.at[roots.at[r]] + 1]++] = 0;
    for (int64_t u = 1; u < count; u++) {
        int64_t end = starts.at[node.at[u] + 1];
        for (int64_t edge = starts.at[node.at[u]]; edge < end; edge++)
            sources.at[begins.at[number.at[targets.at[edge]] + 1]++] = (int32_t)u;
    }
}

GCSPY_LOOP void dominate(int64_t count, struct i32s parent, struct i64s begins, struct i32s sources,
                         struct i32s dominators, struct i32s semis, struct i32s labels, struct i32s ancestors, struct i32s ways)
{
    int32_t *dominator = dominators.at, *semi = semis.at, *label = labels.at, *ancestor = ancestors.at, *way = ways.at;
    for (int64_t w = 0; w < count; w++) {
        semi[w] = (int32_t)w;
        label[w] = (int32_t)w;
        ancestor[w] = parent.at[w];
        dominator[w] = parent.at[w];
    }
    for (int64_t w = count - 1; w > 0; w--) {
        int32_t least = (int32_t)w;
        for (int64_t edge = begins.at[w]; edge < begins.at[w + 1]; edge++) {
            int32_t v = sources.at[edge];
            int32_t candidate = v;
            if (v > w) {
                /* An object with a larger number than w is linked into the forest: shorten the path up to
                 * the last such one, so that each is walked once, and carry the least semidominator along. */
                int64_t depth = 0;
                int32_t above = v;
                while (ancestor[above] > w) {
                    way[depth++] = above;
                    above = ancestor[above];
                }
                while (depth > 0) {
                    int32_t below = way[--depth];
                    if (semi[label[above]] < semi[label[below]])
                        label[below] = label[above];
                    ancestor[below] = ancestor[above];
                    above = below;
                }
                candidate = semi[label[v]];
            }
            if (candidate < least)
                least = candidate;
        }
        semi[w] = least;
    }
    for (int64_t w = 1; w < count; w++) {
        /* The nearest ancestor in the tree built so far that is no later than the semidominator. */
        int32_t d = dominator[w];
        while (d > semi[w])
            d = dominator[d];
        dominator[w] = d;
    }
}

GCSPY_LOOP void add_up(struct i32s order, struct i32s dominator, struct i64s amount)
{
    for (int64_t at = order.length - 1; at >= 0; at--) {
        if (at >= AHEAD)
            PREFETCH(&dominator.at[order.at[at - AHEAD]]);
        int32_t w = order.at[at], d = dominator.at[w];
        if (d >= 0) /* amounts wrap around, as numpy's do */
            amount.at[d] = (int64_t)((uint64_t)amount.at[d] + (uint64_t)amount.at[w]);
    }
}

GCSPY_LOOP void tops(struct i32s order, struct i32s dominator, struct u8s transparent, struct i32s top)
{
    for (int64_t at = 0; at < order.length; at++) {
        if (at + AHEAD < order.length)
            PREFETCH(&dominator.at[order.at[at + AHEAD]]);
        int32_t w = order.at[at], d = dominator.at[w];
        top.at[w] = d < 0 || transparent.at[d] ? w : top.at[d];
    }
}

GCSPY_LOOP int64_t width(struct i64s starts, struct i32s targets, struct i32s roots, struct i32s parent, struct i32s depth,
                         struct i32s order)
{
    int64_t count = 0;
    for (int64_t r = 0; r < roots.length; r++) {
        int32_t root = roots.at[r];
        if (depth.at[root] < 0) {
            depth.at[root] = 0;
            parent.at[root] = -1;
            order.at[count++] = root;
        }
    }
    for (int64_t at = 0; at < count; at++) {
        int32_t here = order.at[at];
        for (int64_t edge = starts.at[here]; edge < starts.at[here + 1]; edge++) {
            int32_t there = targets.at[edge];
            if (depth.at[there] < 0) {
                depth.at[there] = depth.at[here] + 1;
                parent.at[there] = here;
                order.at[count++] = there;
            }
        }
    }
    return count;
}
