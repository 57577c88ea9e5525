! Fortran: formatted, unformatted sequential, and direct access.
program writer
  implicit none
  integer :: k, value
  real(8) :: field(4096)
  open(10, file='fortran.txt', status='replace')
  do k = 1, 5000
    write(10, '(a,i6)') 'line ', k
  end do
  close(10)
  open(11, file='fortran.seq', form='unformatted', status='replace')
  do k = 1, 100
    field = k
    write(11) field
  end do
  close(11)
  open(12, file='fortran.dir', form='unformatted', access='direct', recl=4, status='replace')
  do k = 1000, 1, -1
    write(12, rec=k) k
  end do
  read(12, rec=777) value
  close(12)
  if (value /= 777) stop 1
  open(11, file='fortran.seq', form='unformatted', status='old')
  do k = 1, 100
    read(11) field
    if (field(4096) /= k) stop 2
  end do
  close(11)
  print *, 'done'
end program
