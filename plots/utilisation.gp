# plots/utilisation.gp - how busy the GPU, the ways to the host and its cores are. Columns of `data`: time, GPU, out, in, host; with
# `disks` what these read and write.
width = 1200
height = 560
edge = 0.07
load style
set multiplot
set lmargin at screen 0.07
set rmargin at screen 0.975
set tmargin at screen 1.0 - 112.0/height
set bmargin at screen 66.0/height
set xrange [0:step]
set yrange [0:105]
set xlabel 'time (' . unit . ')' textcolor rgb ink
set ylabel 'busy, %' textcolor rgb ink
set key at screen 0.065, screen 1.0 - 62.0/height left top horizontal reverse Left samplen 1.6 maxrows 1 textcolor rgb ink
set style fill solid 0.35 noborder
lines = "data skip 1 using 1:(100*$2) with filledcurves x1 lc rgb '#0072B2' title 'GPU', " . \
    "data skip 1 using 1:(100*$3) with lines lw 2 lc rgb '#E69F00' title 'copies to the host', " . \
    "data skip 1 using 1:(100*$4) with lines lw 2 dt 2 lc rgb '#7F5F3F' title 'copies to the GPU', " . \
    "data skip 1 using 1:(100*$5) with lines lw 2 dt 3 lc rgb '#333333' title \"host's optimizer\""
if (disks) lines = lines . ", data skip 1 using 1:(100*$6) with lines lw 2 lc rgb '#009E73' title 'disk reads', " . \
    "data skip 1 using 1:(100*$7) with lines lw 2 dt 2 lc rgb '#CC79A7' title 'disk writes'"
eval "plot " . lines
unset multiplot
