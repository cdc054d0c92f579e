# plots/pipeline.gp - timeline of the pipeline. Columns of `data`: start, end, bottom, top, look, micro-batch;
# rows with look -1 (dark text) and -2 (white text) are numbers at (start, end).
lane_px = 560.0 / lanes
lane_px = lane_px > 46 ? 46 : lane_px < 13 ? 13 : lane_px
width = 1200
height = int(lanes * lane_px) + 200
load style
unset grid
set border 1
set multiplot
set lmargin at screen 0.07
set rmargin at screen 0.975
set bmargin at screen 66.0 / height
set tmargin at screen 1.0 - 128.0 / height
set label 1 heading at screen 0.07, screen 1.0 - 26.0/height left font ',15' textcolor rgb ink
set label 2 caption at screen 0.07, screen 1.0 - 52.0/height left textcolor rgb '#555555'
set xrange [0:step]
set yrange [lanes:0]
set xlabel 'time (' . unit . ')' textcolor rgb ink
set ytics scale 0
every_lane = lanes > 32 ? 4 : lanes > 16 ? 2 : 1
set ytics ()
do for [lane=0:lanes-1:every_lane] {
    set ytics add (sprintf('%d', lane * lane_step) lane + 0.37)
}
set ylabel 'pipeline rank' textcolor rgb ink
do for [lane=0:lanes-1] {
    set object 100+lane rectangle from 0, lane+0.04 to step, lane+0.70 behind fc rgb '#EDEDED' fs solid noborder
}
set key at screen 0.065, screen 1.0 - 66.0/height left top horizontal reverse Left samplen 1.2 maxrows 2 textcolor rgb ink
is(i) = column(5) == int(word(look_codes, i)) ? column(1) : NaN
plot for [i=1:look_count] data skip 1 using (is(i)):3:1:2:3:4 with boxxyerror lc rgb word(look_colours, i) title word(look_labels, i), \
     NaN with boxes lc rgb '#EDEDED' title 'idle', \
     data skip 1 using (column(5) == -1 ? column(1) : NaN):2:6 with labels font ',9' textcolor rgb ink notitle, \
     data skip 1 using (column(5) == -2 ? column(1) : NaN):2:6 with labels font ',9' textcolor rgb '#FFFFFF' notitle
unset multiplot
