# docs/gallery/heat.gp - columns of `data`: column, row, MFU (percent), fits (1 or 0), text in the cell.
set ylabel 'tensor parallel' textcolor rgb ink
set xlabel 'pipeline parallel' textcolor rgb ink
unset key
unset grid
set xtics scale 0 ('1' 0, '2' 1, '4' 2, '8' 3, '16' 4, '32' 5)
set ytics scale 0 ('1' 0, '2' 1, '4' 2, '8' 3)
set xrange [-0.5:5.5]
set yrange [-0.5:3.5]
set cbrange [40:60]
set cblabel 'MFU (%)' textcolor rgb ink
set rmargin at screen 0.86
set colorbox user origin screen 0.88, screen 0.118 size screen 0.035, screen 0.732
set palette defined (0 '#F7FBFF', 1 '#C6DBEF', 2 '#6BAED6', 3 '#2171B5')
plot data using 1:2:($4 == 1 ? $3 : NaN) with image, \
     data using 1:2:5 with labels textcolor rgb ink font ',12'
