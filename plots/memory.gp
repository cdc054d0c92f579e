# plots/memory.gp - above: memory over the step of some pipeline ranks (`data`, one index a rank); below: what
# fills every stage at its peak (`extra`: stage, then kinds from the bottom up).
width = 1200
height = 900
load style
top = (capacity > fullest ? capacity : fullest) * 1.08
set yrange [0:top]
set ylabel 'GiB' textcolor rgb ink
set multiplot
set lmargin at screen 0.07
set rmargin at screen 0.975
set label 1 heading at screen 0.07, screen 1.0 - 26.0/height left font ',15' textcolor rgb ink
set label 2 caption at screen 0.07, screen 1.0 - 52.0/height left textcolor rgb '#555555'

set tmargin at screen 1.0 - 112.0/height
set bmargin at screen 0.55
set xrange [0:step]
set xlabel 'time (' . unit . ')' textcolor rgb ink offset 0,0.3
# From dark to light: the order of the pipeline, also in grey.
shades = '#00204D #1F3A6D #3D5B8C #6B7480 #8A8678 #A69D75 #C8B866 #E3D245'
shade(i) = word(shades, line_count > 1 ? 1 + int((i - 1) * 7.0 / (line_count - 1)) : 1)
set key at screen 0.065, screen 1.0 - 62.0/height left top horizontal reverse Left samplen 1.6 maxrows 2 textcolor rgb ink
plot for [i=1:line_count] data skip 1 index i-1 using 1:2 with steps lw 2 lc rgb shade(i) title 'rank ' . word(line_names, i), \
     capacity with lines lw 2 dt 2 lc rgb '#D55E00' title sprintf('capacity %.1f GiB', capacity)

unset label 1
unset label 2
set tmargin at screen 0.395
set bmargin at screen 70.0/height
set label 3 'at the peak of each stage' at screen 0.07, screen 0.462 left textcolor rgb '#555555'
set xrange [-0.6:stages-0.4]
set xlabel 'pipeline rank' textcolor rgb ink offset 0,0.3
every_stage = stages > 64 ? 8 : stages > 32 ? 4 : stages > 16 ? 2 : 1
set xtics ()
do for [s=0:stages-1:every_stage] { set xtics add (sprintf('%d', s) s) }
set boxwidth 0.78
set key at screen 0.065, screen 0.402 left bottom horizontal reverse Left samplen 1.2 maxrows 1 textcolor rgb ink
colours = '#0072B2 #56B4E9 #333333 #E69F00 #CC79A7 #DDDDDD'
kinds = "weights gradients optimizer activations workspace 'reserved besides'"
plot for [k=7:2:-1] extra skip 1 using 1:(sum [j=2:k] column(j)) with boxes lc rgb word(colours, k-1) notitle, \
     for [k=2:7] NaN with boxes lc rgb word(colours, k-1) title word(kinds, k-1), \
     capacity with lines lw 2 dt 2 lc rgb '#D55E00' title sprintf('capacity %.1f GiB', capacity)
unset multiplot
