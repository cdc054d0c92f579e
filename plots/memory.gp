# plots/memory.gp - left: memory over the step of some pipeline ranks (`data`); right: the same of the
# fullest by kind; below: what fills every stage at its peak (`extra`: stage, then kinds from the bottom up).
width = 1200
height = 940
edge = 0.07
load style
set datafile columnheaders
# A capacity far above is said and not drawn: what differs would lie in the lowest part of the picture.
far = fullest < 0.5 * capacity
top = far ? fullest * 1.25 : (capacity > fullest ? capacity : fullest) * 1.08
capacity_text = far ? '' : sprintf('capacity %.1f GiB', capacity)
limit = far ? NaN : capacity
set yrange [0:top]
set multiplot
kinds = "weights gradients optimizer activations workspace 'reserved besides'"
columns = 'weights_gib gradients_gib optimizer_gib activations_gib workspace_gib reserved_besides_gib'
of(rank) = column('rank') == int(rank) ? column('time') : NaN
cells(n) = sum [j=1:n] column(word(columns, j))

set tmargin at screen 1.0 - 132.0/height
set bmargin at screen 0.535
set lmargin at screen 0.07
set rmargin at screen 0.52
set ylabel 'GiB' textcolor rgb ink
set xrange [0:step]
set xlabel 'time (' . unit . ')' textcolor rgb ink
# Told apart by hue and lightness (Tol's muted colours); none looks like the capacity's.
lines = '#332288 #56B4E9 #117733 #DDAA33 #CC6677 #AA4499 #44AA99'
set key at screen 0.065, screen 1.0 - 66.0/height left top horizontal reverse Left samplen 1.6 maxrows 2 textcolor rgb ink
plot for [i=1:line_count] data using (of(word(line_names, i))):'total_gib' with steps lw 2 lc rgb word(lines, i) \
         title 'rank ' . word(line_names, i), \
     limit with lines lw 2 dt 2 lc rgb (far ? '#FFFFFF' : '#D55E00') title capacity_text

unset label 1
unset label 2
set lmargin at screen 0.57
set rmargin at screen 0.975
unset ylabel
set label 3 sprintf('rank %d, the fullest, by kind', fullest_rank) at screen 0.57, screen 1.0 - 100.0/height left textcolor rgb '#555555'
unset key
plot for [k=5:1:-1] data using (of(fullest_rank)):(cells(k)) with fillsteps lc rgb coded(word(kinds, k)) notitle, \
     limit with lines lw 2 dt 2 lc rgb '#D55E00' notitle
unset label 3

set tmargin at screen 0.385
set bmargin at screen 70.0/height
set lmargin at screen 0.07
set label 4 'at the peak of each stage' at screen 0.07, screen 0.452 left textcolor rgb '#555555'
set xrange [-0.6:stages-0.4]
set ylabel 'GiB' textcolor rgb ink
set xlabel 'pipeline rank' textcolor rgb ink offset 0,0.3
every_stage = stages > 64 ? 8 : stages > 32 ? 4 : stages > 16 ? 2 : 1
set xtics ()
do for [s=0:stages-1:every_stage] { set xtics add (sprintf('%d', s) s) }
set boxwidth 0.78
set key at screen 0.065, screen 0.392 left bottom horizontal reverse Left samplen 1.2 maxrows 1 textcolor rgb ink
plot for [k=6:1:-1] extra using 'stage':(cells(k)) with boxes lc rgb coded(word(kinds, k)) notitle, \
     for [k=1:6] NaN with boxes lc rgb coded(word(kinds, k)) title word(kinds, k), \
     limit with lines lw 2 dt 2 lc rgb (far ? '#FFFFFF' : '#D55E00') title capacity_text
unset multiplot
