# plots/loop.gp - one turn of a loop: a lane for each part of the machine, a box for each phase. Columns of `data`: part, lane, phase,
# colour, begin, end; lane_0 and so on name the lanes.
width = 1200
height = lanes * 90 + 210
edge = 0.07
load style
set datafile columnheaders
unset grid
set border 1
set lmargin at screen 0.07
set rmargin at screen 0.975
set bmargin at screen 66.0 / height
set tmargin at screen 1.0 - 136.0 / height
set xrange [0:turn]
set yrange [lanes:0]
set xlabel 'time (' . unit . ')' textcolor rgb ink
unset ytics
array hue[8] = ['#0072B2', '#E69F00', '#009E73', '#CC79A7', '#56B4E9', '#D55E00', '#8C6D1F', '#888888']
do for [lane=0:lanes-1] {
    set object 100+lane rectangle from 0, lane+0.30 to turn, lane+0.92 behind fc rgb '#EDEDED' fs solid noborder
    set label 10+lane value(sprintf('lane_%d', lane)) at 0, lane+0.17 left textcolor rgb ink
}
set key at screen 0.065, screen 1.0 - 68.0/height left top horizontal reverse Left samplen 1.2 maxrows 2 textcolor rgb ink
is(i) = column('colour') == i ? column('begin') : NaN
plot for [i=1:colours] data using (is(i)):(column('lane')+0.61):(is(i)):(column('end')):(column('lane')+0.30):(column('lane')+0.92) \
         with boxxyerror lc rgb hue[(i-1) % 8 + 1] title word(names, i), \
     NaN with boxes lc rgb '#EDEDED' title 'waits'
