# docs/gallery/years.gp - columns of `data`: year, name, GiB, place of the label; `extra` likewise, of GPUs.
set lmargin at screen 0.1
set ylabel 'GiB' offset 1,0 textcolor rgb ink
set xlabel 'year of publication (models), of announcement (GPUs)' textcolor rgb ink
set logscale y 10
set ytics ('1' 1, '10' 10, '100' 100, '1,000' 1000, '10,000' 10000)
set yrange [0.5:60000]
set xrange [2015.4:2026.4]
set xtics 2016,1
set key top left reverse Left samplen 2 textcolor rgb ink
beside(place) = stringcolumn(4) eq place ? column(1) : NaN
plot data using 1:3 with points pt 7 ps 1.4 lc rgb '#D55E00' title 'model: parameters x 16 B', \
     data using (beside('right')):3:2 with labels left offset 0.9,0.1 font ',10' textcolor rgb ink notitle, \
     data using (beside('left')):3:2 with labels right offset -0.9,0.1 font ',10' textcolor rgb ink notitle, \
     extra using 1:3 with points pt 5 ps 1.4 lc rgb '#0072B2' title 'GPU: memory', \
     extra using (beside('below')):3:2 with labels offset 0,-0.9 font ',10' textcolor rgb ink notitle, \
     extra using (beside('above')):3:2 with labels offset 0,0.9 font ',10' textcolor rgb ink notitle
