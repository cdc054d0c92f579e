# plots/sweep.gp - columns of `data`: value, MFU (percent), step, reserved memory (GiB), fits (1 or 0).
width = 1200
height = 700
edge = 0.075
load style
set multiplot
set lmargin at screen 0.075
set rmargin at screen 0.975
set xrange [-0.5:points-0.5]
set xtics scale 0

set tmargin at screen 1.0 - 84.0/height
set bmargin at screen 0.50
set yrange [0:best*1.18]
set ylabel 'MFU (%)' textcolor rgb ink
unset key
set format x ''
plot data skip 1 using (numbers ? $0 : NaN):2 with lines lw 1.5 lc rgb faint notitle, \
     data skip 1 using 0:($5 == 1 ? $2 : NaN) with points pt 7 ps 1.6 lc rgb '#0072B2' notitle, \
     data skip 1 using 0:($5 == 0 ? $2 : NaN) with points pt 6 ps 1.6 lw 2 lc rgb '#0072B2' notitle, \
     data skip 1 using 0:2:(sprintf('%.1f', $2)) with labels offset 0,1 textcolor rgb ink notitle

unset label 1
unset label 2
set tmargin at screen 0.43
set bmargin at screen 66.0/height
top = (capacity > fullest ? capacity : fullest) * 1.15
set yrange [0:top]
set ylabel 'memory (GiB)' textcolor rgb ink
set xlabel swept textcolor rgb ink
set boxwidth 0.5
set format x '%g'
set key at screen 0.985, screen 0.445 right bottom horizontal reverse Left samplen 3 textcolor rgb ink
plot data skip 1 using 0:($5 == 1 ? $4 : NaN):xtic(1) with boxes lc rgb '#56B4E9' notitle, \
     data skip 1 using 0:($5 == 0 ? $4 : NaN) with boxes lc rgb '#56B4E9' lw 2 fs empty border rgb '#56B4E9' notitle, \
     capacity with lines lw 2 dt 2 lc rgb '#D55E00' title sprintf('capacity %.1f GiB', capacity), \
     data skip 1 using 0:4:(sprintf('%.1f', $4)) with labels offset 0,0.7 textcolor rgb ink notitle
unset multiplot
