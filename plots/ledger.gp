# plots/ledger.gp - columns of `data`: source, its file, run, measured (s), predicted (s).
width = 1200
height = 1150
edge = 0.075
load style
# Okabe and Ito's colours (yellow darkened), each used twice, filled and open: no two sources look alike.
array colours[8] = ['#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', '#56B4E9', '#222222', '#B3A400']
array filled[8] = [7, 5, 9, 11, 13, 7, 5, 9]
array open[8] = [4, 6, 8, 10, 12, 4, 6, 8]
colour(i) = colours[i % 8 + 1]
shape(i) = i % 16 < 8 ? filled[i % 8 + 1] : open[i % 8 + 1]
title_of(i) = value(sprintf('name%d', i))
set multiplot
set lmargin at screen 0.075
set rmargin at screen 0.745
set logscale x 10
set xrange [low/1.3:high*1.3]
set format x '%g'
set grid back xtics ytics lc rgb '#E4E4E4' lw 1 lt 1
set samples 200

set tmargin at screen 1.0 - 84.0/height
set bmargin at screen 0.385
set logscale y 10
set yrange [low/1.3:high*1.3]
set format y '%g'
set ylabel 'predicted step time (s)' textcolor rgb ink
set key at screen 0.76, screen 1.0 - 84.0/height left top vertical reverse Left samplen 1 spacing 1.35 textcolor rgb ink
plot '+' using 1:($1*0.9):($1*1.1) with filledcurves lc rgb '#D0D0D0' title '±10 %', \
     x with lines lw 1 lc rgb '#888888' title 'predicted = measured', \
     for [i=0:sources-1] data skip 1 using ($1 == i ? $4 : NaN):5 with points pt shape(i) ps 1 lw 1.5 lc rgb colour(i) title title_of(i)

unset label 1
unset label 2
unset key
unset logscale y
set tmargin at screen 0.345
set bmargin at screen 70.0/height
reach = worst > 100 ? 100 : worst
set yrange [-reach*1.08:reach*1.08]
set format y '%+.0f'
set xlabel 'measured step time (s)' textcolor rgb ink
set ylabel 'error (%)' textcolor rgb ink
clipped(e) = e > reach ? reach : e
plot '+' using 1:(-10):(10) with filledcurves lc rgb '#D0D0D0', \
     0 with lines lw 1 lc rgb '#888888', \
     for [i=0:sources-1] data skip 1 using ($1 == i ? $4 : NaN):(clipped(100*($5/$4 - 1))) with points pt shape(i) ps 1 lw 1.5 lc rgb colour(i)
unset multiplot
