# plots/pipeline.gp - timeline of the pipeline; `crowded`: of so many passes that shares are drawn. Columns of `data`: rank, band, start, end, kind, stage, microbatch,
# pass_start, pass_end. A lane a rank: a tall band of compute, below it a thin strip of all other streams.
lane_px = 560.0 / lanes
lane_px = lane_px > 46 ? 46 : lane_px < 13 ? 13 : lane_px
width = 1200
height = int(lanes * lane_px) + 200
edge = 0.07
load style
set datafile columnheaders
unset grid
set border 1
set multiplot
set lmargin at screen 0.07
set rmargin at screen 0.975
set bmargin at screen 66.0 / height
set tmargin at screen 1.0 - 128.0 / height
set xrange [0:step]
set yrange [lanes:0]
set xlabel 'time (' . unit . ')' textcolor rgb ink
set ytics scale 0
every_lane = lanes > 32 ? 4 : lanes > 16 ? 2 : 1
set ytics ()
do for [lane=0:lanes-1:every_lane] {
    set ytics add (sprintf('%d', lane * lane_step) lane + (crowded ? 0.45 : 0.37))
}
set ylabel 'pipeline rank' textcolor rgb ink
do for [lane=0:lanes-1] {
    set object 100+lane rectangle from 0, lane+0.04 to step, lane+(crowded ? 0.86 : 0.70) behind fc rgb '#EDEDED' fs solid noborder
}
set key at screen 0.065, screen 1.0 - 66.0/height left top horizontal reverse Left samplen 1.2 maxrows 2 textcolor rgb ink
lane(y) = column('rank') / lane_step + y
tall(a, b) = stringcolumn('band') eq 'compute' ? a : b
is(i) = stringcolumn('kind') eq word(kind_labels, i) ? column('start') : NaN
end_of(x) = column('end') == column('pass_end') && column('pass_end') - column('pass_start') > 6.0 * gap ? column('end') - gap : column('end')
# Numbers of micro-batches, where they have room.
digits(n) = n < 10 ? 1 : n < 100 ? 2 : 3
room_for(i) = word(kind_pass, i) eq '1' && stringcolumn('band') eq 'compute' && column('microbatch') >= 0 && \
          column('pass_end') - column('pass_start') > (digits(column('microbatch')) + 0.3) * 0.0055 * step
middle(i) = is(i) == is(i) && room_for(i) ? (column('pass_start') + column('pass_end')) / 2 : NaN
if (crowded) {
    # Polygons of `extra`, a block a kind: how much of each moment goes into it.
    plot for [i=1:kinds] extra index (i-1) using 1:2 with filledcurves closed lc rgb coded(word(kind_labels, i)) title word(kind_labels, i), \
         NaN with boxes lc rgb '#EDEDED' title 'idle'
} else {
    # A hair of background behind passes that are much wider.
    gap = 0.001 * step
    plot for [i=1:kinds] data using (is(i)):(lane(0.37)):(is(i)):(end_of(0)):(lane(tall(0.04, 0.73))):(lane(tall(0.70, 0.89))) \
             with boxxyerror lc rgb coded(word(kind_labels, i)) title word(kind_labels, i), \
         NaN with boxes lc rgb '#EDEDED' title 'idle', \
         for [i=1:kinds] data using (middle(i)):(lane(0.37)):(sprintf('%d', column('microbatch'))) \
             with labels font ',9' textcolor rgb (word(kind_dark, i) eq '1' ? '#FFFFFF' : ink) notitle
}
unset multiplot
