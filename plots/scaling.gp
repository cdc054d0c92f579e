# plots/scaling.gp - columns of `data`: series, name, GPUs, days, MFU (percent), fits (1 or 0), answer (1 or 0).
width = 1200
height = 800
edge = 0.075
load style
array colours[6] = ['#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', '#56B4E9']
colour(i) = colours[i % 6 + 1]
title_of(i) = value(sprintf('name%d', i))
stats data skip 1 using 3 name 'gpus' nooutput
set xrange [gpus_min/1.12:gpus_max*1.12]
# Doublings, halves between them where the range is short, and its ends where it has none of these: never an axis without labels.
near = gpus_max / gpus_min < 6
set xtics ()
do for [k=0:24] {
    set xtics add (grouped(2**k) 2**k)
    if (near && k > 0) { set xtics add (grouped(3 * 2**(k-1)) 3 * 2**(k-1)) }
}
if (gpus_max / gpus_min < 1.4) {
    set xtics (grouped(gpus_min) gpus_min)
    if (gpus_max / gpus_min > 1.05) { set xtics add (grouped(gpus_max) gpus_max) }
}
set multiplot
set lmargin at screen 0.075
set rmargin at screen 0.975
set logscale x 2
set logscale y 10
set xtics scale 0.5
set grid xtics ytics lc rgb '#E4E4E4' lw 1 lt 1

set tmargin at screen 1.0 - 84.0/height
set bmargin at screen 0.42
set yrange [days_low/1.6:days_high*1.6]
set ylabel 'days' textcolor rgb ink
set ytics ()
do for [decade=-6:6] { do for [m in "1 2 3 5 7"] { set ytics add (sprintf('%g', m * 10.0**decade) m * 10.0**decade) } }
set key at screen 0.97, screen 1.0 - 84.0/height right top vertical reverse Left samplen 2 textcolor rgb ink
if (deadline > 0) {
    set arrow 1 from graph 0, first deadline to graph 1, first deadline nohead lw 2 dt 2 lc rgb '#888888'
    set label 3 sprintf('deadline %g days', deadline) at graph 0.99, first deadline right offset 0,0.6 textcolor rgb '#555555'
}
plot for [i=0:series-1] data skip 1 using ($1 == i ? $3 : NaN):4 with lines lw 2 lc rgb colour(i) title title_of(i), \
     for [i=0:series-1] data skip 1 using ($1 == i && $6 == 1 ? $3 : NaN):4 with points pt 7 ps 1.3 lc rgb colour(i) notitle, \
     for [i=0:series-1] data skip 1 using ($1 == i && $6 == 0 ? $3 : NaN):4 with points pt 6 ps 1.3 lw 2 lc rgb colour(i) notitle, \
     data skip 1 using ($7 == 1 ? $3 : NaN):4 with points pt 6 ps 3 lw 2 lc rgb ink notitle

unset label 1
unset label 2
unset label 3
unset arrow 1
unset logscale y
set tmargin at screen 0.38
set bmargin at screen 70.0/height
set yrange [0:best*1.2]
set ytics auto
set ylabel 'MFU (%)' textcolor rgb ink
set xlabel 'GPUs' textcolor rgb ink
unset key
plot for [i=0:series-1] data skip 1 using ($1 == i ? $3 : NaN):5 with lines lw 2 lc rgb colour(i), \
     for [i=0:series-1] data skip 1 using ($1 == i && $6 == 1 ? $3 : NaN):5 with points pt 7 ps 1.3 lc rgb colour(i), \
     for [i=0:series-1] data skip 1 using ($1 == i && $6 == 0 ? $3 : NaN):5 with points pt 6 ps 1.3 lw 2 lc rgb colour(i), \
     data skip 1 using ($7 == 1 ? $3 : NaN):5 with points pt 6 ps 3 lw 2 lc rgb ink
unset multiplot
