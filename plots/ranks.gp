# plots/ranks.gp - columns of `data`: GPU, node, place in it, pipeline, data, context, tensor and expert rank, replica (1: of the first one),
# group (1: of the first data-parallel group). Nodes are boxes, `columns` of them side by side; their GPUs stand in `across` columns.
across = per_node <= 4 ? per_node : per_node % 8 == 0 && per_node > 16 ? 8 : per_node % 4 == 0 ? 4 : ceil(sqrt(per_node))
deep = ceil(1.0 * per_node / across)
rows = ceil(1.0 * nodes / columns)
# A cell is one unit; a node has a margin of a third of one, and of a name's height where there is room.
cell_px = 1150.0 / (columns * (across + 0.5))
cell_px = cell_px > 40 ? 40 : cell_px
named = cell_px * across > 58
head = named ? 16.0 / cell_px : 0
width = 1200
height = int(rows * (deep + 0.5 + head) * cell_px) + 150
edge = 0.02
load style
set datafile columnheaders
unset border
unset tics
unset grid
set lmargin at screen 0.02
set rmargin at screen 0.98
set tmargin at screen 1.0 - 110.0/height
set bmargin at screen 24.0/height
set xrange [0:1152.0/cell_px]
set yrange [(height-134.0)/cell_px:0]
# From light to dark: told apart in grey as well.
part(p) = stages > 1 ? 1.0 * p / (stages - 1) : 0.25
mix(a, b, t) = int(a + (b - a) * t)
two(a, b, c, t) = t < 0.5 ? mix(a, b, 2 * t) : mix(b, c, 2 * t - 1)
tone(p) = 65536 * two(0xFD, 0x5C, 0x2A, part(p)) + 256 * two(0xE7, 0xA9, 0x1F, part(p)) + two(0xA0, 0x93, 0x5E, part(p))
nodes_row(n) = floor(n / columns)
left(x) = (column('node') - columns * nodes_row(column('node'))) * (across + 0.5) + column('place') - across * floor(column('place') / across) + x
top(y) = nodes_row(column('node')) * (deep + 0.5 + head) + head + floor(column('place') / across) + y
if (named) {
    do for [n=0:nodes-1] {
        set label 10+n sprintf('node %d', n) at (n - columns * nodes_row(n)) * (across + 0.5), nodes_row(n) * (deep + 0.5 + head) + head * 0.5 left font ',8' \
            textcolor rgb '#777777'
    }
}
set key at screen 0.018, screen 1.0 - 66.0/height left top horizontal reverse Left samplen 1.2 maxrows 1 textcolor rgb ink
first = stages > 1 ? 'pipeline rank 0' : 'GPU'
writes = cell_px >= 20 && tensor > 1
plot data using (left(0.5)):(top(0.5)):(left(0.05)):(left(0.95)):(top(0.05)):(top(0.95)):(tone(column('pipeline'))) with boxxyerror lc rgb variable notitle, \
     NaN with boxes lc rgb tone(0) title first, \
     NaN with boxes lc rgb tone(stages - 1) title (stages > 1 ? sprintf('pipeline rank %d', stages - 1) : ''), \
     data using (column('replica') == 1 && replicas > 1 ? left(0.5) : NaN):(top(0.5)):(left(0.09)):(left(0.91)):(top(0.09)):(top(0.91)) with boxxyerror lw (cell_px > 12 ? 3 : 1.5) \
         lc rgb '#D55E00' fs empty border title (replicas > 1 ? replica : ''), \
     data using (column('group') == 1 && replicas > 1 ? left(0.5) : NaN):(top(writes ? 0.78 : 0.5)) with points pt 7 ps (cell_px > 15 ? 0.9 : 0.5) lc rgb ink \
         title (replicas > 1 ? 'one data-parallel group' : ''), \
     data using (writes ? left(0.5) : NaN):(top(0.42)):(sprintf('%d', column('tensor'))) with labels font ',9' textcolor rgb ink notitle, \
     NaN with points ps 0 title (writes ? 'number: tensor rank' : '')
