# plots/fit.gp - columns of `data`: group, its name, row, measured (s), predicted (s).
width = 1200
height = 720
edge = 0.075
load style
array colours[8] = ['#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', '#56B4E9', '#222222', '#B3A400']
array filled[8] = [7, 5, 9, 11, 13, 7, 5, 9]
array open[8] = [4, 6, 8, 10, 12, 4, 6, 8]
colour(i) = colours[i % 8 + 1]
shape(i) = i % 16 < 8 ? filled[i % 8 + 1] : open[i % 8 + 1]
title_of(i) = value(sprintf('name%d', i))
set lmargin at screen 0.075
set rmargin at screen 0.72
set tmargin at screen 1.0 - 84.0/height
set bmargin at screen 70.0/height
set logscale x 10
set xrange [low/1.3:high*1.3]
set format x '%g'
set grid back xtics ytics lc rgb '#E4E4E4' lw 1 lt 1
reach = worst > 100 ? 100 : worst
set yrange [-reach*1.08:reach*1.08]
set format y '%+.0f'
set xlabel 'measured time (s)' textcolor rgb ink
set ylabel 'predicted over measured (%)' textcolor rgb ink
set key title 'rows, median error' left textcolor rgb ink
set key at screen 0.73, screen 1.0 - 84.0/height left top vertical reverse Left samplen 1 spacing 1.35 textcolor rgb ink
clipped(e) = e > reach ? reach : e < -reach ? -reach : e
plot '+' using 1:(-10):(10) with filledcurves lc rgb '#DCDCDC' title '±10 %', \
     0 with lines lw 1 lc rgb '#888888' notitle, \
     for [i=0:groups-1] data skip 1 using ($1 == i ? $4 : NaN):(clipped(100*($5/$4 - 1))) with points pt shape(i) ps 0.8 lw 1.2 lc rgb colour(i) title title_of(i)
